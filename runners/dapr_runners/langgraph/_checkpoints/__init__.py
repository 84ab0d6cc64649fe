"""How DaprSaver keeps checkpoints: the modules behind it, one concept each."""
