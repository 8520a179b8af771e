"""What cells show reaches the host whole, whoever shows it, whenever, and whatever interrupts it."""

from __future__ import annotations

import threading

import pytest

from cellblock import CellState, Done, Output, OutputType, Session

BIG = "class Big:\n    def _repr_html_(self): return 'x' * 190_000\nbig = Big()\n"


def kinds(outputs: tuple[Output, ...]) -> list[tuple[str, str]]:
    return [(output.stream or output.type.value, output.text) for output in outputs]


def test_displays_stand_between_the_text_printed_before_and_after(session: Session) -> None:
    cell = session.run("print('a')\ndisplay('b')\nprint('c', end='')\ndisplay('d')\n'e'")
    assert kinds(cell.outputs) == [
        ("stdout", "a\n"),
        ("text", "'b'"),
        ("stdout", "c"),
        ("text", "'d'"),
        ("text", "'e'"),
    ]
    assert [output.is_result for output in cell.outputs] == [False, False, False, False, True]
    assert cell.text == "a\n'b'\nc\n'd'\n'e'"


def test_displays_stand_between_the_text_of_subprocesses_and_raw_writes(session: Session) -> None:
    source = (
        "import os, subprocess\n"
        "for n in range(3):\n"
        "    print('p', n)\n    os.write(1, b'w\\n')\n    subprocess.run(['echo', 's'])\n    display(n)"
    )
    assert kinds(session.run(source).outputs) == [
        pair for n in range(3) for pair in (("stdout", f"p {n}\nw\ns\n"), ("text", str(n)))
    ]


def test_display_takes_several_values_and_jupyters_options(session: Session) -> None:
    cell = session.run("display(1, 'b', raw=False)\ndisplay()")
    assert kinds(cell.outputs) == [("text", "1"), ("text", "'b'")]


def test_show_of_a_picture_shows_it_here(session: Session) -> None:
    pytest.importorskip("PIL")
    cell = session.run("from PIL import Image\nImage.new('RGB', (2, 2)).show()\nprint('after')")
    assert [output.type for output in cell.outputs] == [OutputType.IMAGE, OutputType.TEXT]
    uri = cell.outputs[0].uri
    assert uri is not None
    assert session.read_output(uri).startswith(b"\x89PNG")


def test_display_past_the_output_limit_still_arrives_in_order(session: Session) -> None:
    cell = session.run("print('a' * 300_000)\ndisplay('b')\nprint('c' * 300_000)\ndisplay('d')")
    shown = [output.text for output in cell.outputs if output.stream is None]
    assert shown == ["'b'", "'d'"]


def test_interrupt_in_the_middle_of_a_large_display_keeps_the_session(session: Session) -> None:
    session.run(BIG)
    for _ in range(10):
        events = session.stream("while True: display(big)")
        for event in events:
            session.interrupt()
            if isinstance(event, Done):
                assert event.cell.error is not None
                assert event.cell.error.type == "KeyboardInterrupt"
    assert session.run("type(big).__name__").value == "Big"


def test_threads_that_show_large_things_at_once_do_not_garble_one_another(session: Session) -> None:
    cell = session.run(
        BIG + "import threading\nthreads = [threading.Thread(target=display, args=(big,)) for _ in range(8)]\n"
        "for thread in threads: thread.start()\nfor thread in threads: thread.join()"
    )
    assert cell.state is CellState.COMPLETED, cell.error
    assert [len(str(output.data["text/html"])) for output in cell.outputs] == [190_000] * 8


@pytest.mark.sampled(0)
def test_thread_that_shows_things_between_cells_does_not_harm_the_session(session: Session) -> None:
    session.run(
        BIG + "import threading\ngo_on = True\ndef show():\n    while go_on: display(big)\n"
        "thread = threading.Thread(target=show)\nthread.start()"
    )
    for number in range(20):
        cell = session.run(f"{number}")
        assert (cell.state, cell.value) == (CellState.COMPLETED, number), cell.error
    assert session.run("go_on = False\nthread.join()").ok


def test_what_a_thread_shows_between_cells_belongs_to_the_next_cell(session: Session) -> None:
    session.run(
        "import threading\ndef show():\n    display('late')\n    shown.set()\nshown = threading.Event()\n"
        "timer = threading.Timer(0.05, show)\ntimer.start()"
    )
    cell = session.run("shown.wait(10)")
    assert "'late'" in [output.text for output in cell.outputs]


@pytest.mark.sampled(0)
def test_finalizer_that_shows_something_does_not_harm_the_session(session: Session) -> None:
    cell = session.run(
        BIG + "class Dying:\n    def __del__(self): display(big)\n"
        "for _ in range(50):\n    d = Dying()\n    d.me = d\n    display(big)\nimport gc\nd = gc.collect()"
    )
    assert cell.state is CellState.COMPLETED, cell.error
    assert session.run("1").value == 1


def test_child_process_that_shows_something_does_not_speak_for_the_session(session: Session) -> None:
    cell = session.run(
        "import os\npid = os.fork()\nif pid == 0:\n    display('child')\n    os._exit(0)\nos.waitpid(pid, 0)[1]"
    )
    assert (cell.state, cell.value) == (CellState.COMPLETED, 0)
    assert "child" not in cell.text


def test_more_displays_than_are_kept_are_counted(session: Session) -> None:
    cell = session.run("for n in range(600): display(n)")
    assert len(cell.outputs) == 501
    assert cell.outputs[-1].text == "[100 displays left out: too many or too large]\n"


def test_flood_of_displays_meets_the_time_limit(hasty: Session) -> None:
    cell = hasty.run("x = 1\nwhile True: display(1)")
    assert cell.state is CellState.TIMEOUT
    assert hasty.run("x").value == 1


def test_stream_tells_displays_before_the_cell_ends(session: Session) -> None:
    events = session.stream("display('first')\nopen('told', 'w').close()\nimport time\nwhile True: time.sleep(0.01)")
    first = next(events)
    assert isinstance(first, Output)
    assert first.type is OutputType.TEXT
    threading.Timer(0.1, session.interrupt).start()
    assert isinstance(list(events)[-1], Done)
