"""Ids and keys of tenants: no name of anything can be made to look like another's."""

import re
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dapr_runners.engine import InvalidRunnerNameError, InvalidTenantError
from dapr_runners.engine._keys import is_run_id, own_run_id, run_id, thread_key
from dapr_runners.engine._tenants import check_runner_name, mark_of, tenant_mark, within

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TENANT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=300)
ACME, EVIL = tenant_mark("acme"), tenant_mark("evil")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("", "it is empty"),
        ("x" * 257, "it has more than 256 characters"),
        ("a\ud800", "it is no valid Unicode text"),
        ("a\nb", "it has a control character"),
        ("a\0", "it has a control character"),
    ],
)
def test_a_tenant_that_names_nothing_is_refused(bad: str, reason: str) -> None:
    with pytest.raises(InvalidTenantError, match=reason) as refused:
        tenant_mark(bad)
    assert refused.value.tenant == bad


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "a/b",
        "a\nb",
        "\ud800",
        *(f"{each}graph" for each in (ACME, f"-{ACME}", f" {ACME}", f"é{ACME}")),
    ],
)
def test_a_runner_that_could_be_taken_for_another_is_refused(bad: str) -> None:
    with pytest.raises(InvalidRunnerNameError):
        check_runner_name(bad)


@pytest.mark.parametrize(
    "names",
    [
        ("acme", "Acme", "ACME"),
        ("é", "e\u0301"),
        ("a", "\u0430"),
        ("acme", " acme", "acme ", "acme\u200b"),
    ],
    ids=["case", "normal forms", "look-alikes", "blanks"],
)
def test_names_that_look_alike_are_different_tenants(names: tuple[str, ...]) -> None:
    assert len({tenant_mark(name) for name in names}) == len(names)


@given(tenant=TENANT)
def test_a_mark_is_the_same_for_ever_and_has_one_form(tenant: str) -> None:
    assume(len(tenant) <= 256)
    assert re.fullmatch(r"t_[0-9a-v]{20}_", tenant_mark(tenant))
    assert tenant_mark(tenant) == tenant_mark(tenant)


def test_marks_and_ids_stay_as_they_are_recorded() -> None:
    assert tenant_mark(None) == ""
    assert ACME == "t_eo20bt6v7sjhcab70efh_"
    assert run_id("simple_graph", "t", 1) == "simple_graph-aa88d2efd2e1dfdb-1"
    assert run_id("simple_graph", "t", 1, ACME) == f"{ACME}simple_graph-aa88d2efd2e1dfdb-1"


PLACE = st.tuples(st.sampled_from([None, "acme", "evil"]), TEXT, TEXT, st.integers(1, 99_999_999))


@given(one=PLACE, two=PLACE)
@example((None, "a", "b-1", 1), (None, "a-b", "1", 1))
@example(("acme", "a", "", 1), (None, "a", "acme", 1))
@example((None, "x" * 32 + "1", "t", 1), (None, "x" * 32 + "2", "t", 1))
def test_each_turn_has_an_id_of_its_own_under_its_tenant(one: Any, two: Any) -> None:
    ids, keys = [], []
    for tenant, runner, thread, turn in (one, two):
        mark = tenant_mark(tenant)
        ids.append(run_id(runner, thread, turn, mark))
        keys.append(thread_key(runner, thread, mark))
        assert is_run_id(ids[-1]) and is_run_id(own_run_id(runner, mark))
        assert mark_of(ids[-1]) == mark or mark_of(runner)
    assert (ids[0] == ids[1]) == (one == two)
    assert (keys[0] == keys[1]) == (one[:3] == two[:3])


@given(name=TEXT, mark=st.sampled_from(["", ACME, EVIL]))
@example(f"{EVIL}x", ACME)
@example(f"{EVIL}x", "")
@example(f"{ACME}{EVIL}x", ACME)
@example(ACME, "")
@example("../" + EVIL, ACME)
def test_who_names_a_run_names_one_of_their_own_or_none(name: str, mark: str) -> None:
    run = within(mark, name)
    assert run is None or mark_of(run) == mark
    if run is not None:
        assert within(mark, run) == run  # what they were told of works as well
    if mark_of(name) not in ("", mark):
        assert run is None
