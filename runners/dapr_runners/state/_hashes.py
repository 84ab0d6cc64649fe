"""What names a content: the same bytes have the same name."""

import hashlib

HASH_BYTES = 16


def content_hash(data: bytes) -> bytes:
    """BLAKE2b of ``data``, 16 bytes."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def artifact_key(data: bytes) -> str:
    """What names the artifact ``data`` where nothing is encrypted: its hash in hexadecimal."""
    return content_hash(data).hex()
