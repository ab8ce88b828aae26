"""What the runtime library and its server both know, against the library's header."""

import re

from simt.programs import header, recording
from simt.programs.server import memory, recorder
from simt.programs.server.serving import Server
from simt.programs.server.waits import Order


def test_each_request_has_a_method_that_serves_it():
    requests = header.numbers("request")
    assert len(requests) > 15 and len(set(requests.values())) == len(requests)
    for name in requests:
        assert callable(getattr(Server, name.lower())), name


def test_orders_and_notes_have_the_headers_numbers():
    assert header.numbers("order") == {each.name: each.value for each in Order}
    notes = header.numbers("note")
    assert notes == {name: getattr(recorder, name) for name in notes}


def test_kinds_of_memory_and_flags_have_the_headers_numbers():
    kinds = header.numbers("kind")
    for name in ("DEVICE", "PINNED", "MANAGED", "VARIABLE"):
        assert getattr(memory, name) == kinds[name]
    flags = dict(re.findall(r"\b(CHECKED|WATCHED|RECORDED) = (\d+)", header.HEADER.read_text()))
    assert {name: getattr(recording, name) for name in flags} == {k: int(v) for k, v in flags.items()}
