"""Faults that the first Workbench had, and the tests that keep each away: in a real browser, those
of the command in a real process."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import ROOT

UI, WIDGETS = "tests/ui/", "tests/widgets/"
#: Number → what was wrong, and its tests.
MENDED = {
    1: ("keys pressed on a widget delete and insert cells; arrows move no slider",
        [UI + "test_alone.py::test_no_key_on_a_widget_changes_the_notebook",
         UI + "test_alone.py::test_arrow_keys_move_a_slider_and_not_the_notebook"]),
    2: ("open sizes of DeepLab have no fix, and its answer to an image is empty",
        [UI + "test_nine_steps.py::"
         "test_open_sizes_are_fixed_by_a_click_and_an_image_is_segmented"]),
    3: ("one backend's numbers under the name of another",
        [UI + "test_truthful.py::"
         "test_no_number_stands_under_a_device_that_it_was_not_measured_on"]),
    4: ("nothing says how many layers ran on OpenCL",
        [UI + "test_truthful.py::test_the_share_that_ran_on_opencl_is_said"]),
    5: ("what has ended is said to run, what runs to be missing; jobs do not queue",
        [UI + "test_truthful.py::test_what_runs_is_said_until_it_ends_and_not_after"]),
    6: ("lesson 6 loses its story after Run All, on screen and exported",
        [UI + "test_lesson_story.py::test_the_first_failing_layer_stays_on_show"]),
    7: ("a block has several names",
        [UI + "test_truthful.py::test_a_block_has_one_name_in_chart_strip_and_graph"]),
    8: ("scrollbars inside of scrollbars",
        [UI + "test_alone.py::test_no_scrollbar_inside_of_another"]),
    9: ("Tab offers Python's names instead of model files",
        [UI + "test_truthful.py::test_tab_completes_model_files"]),
    10: ("after a restart of the kernel everything looks alive",
         [UI + "test_kernel.py::test_after_a_restart_nothing_turns_and_nothing_can_be_pressed"]),
    11: ("Find jumps from Conv_1 to Conv_11",
         [WIDGETS + "test_rendered.py::test_find_prefers_the_layer_of_exactly_that_name"]),
    12: ("samples of another model are chosen for calibration",
         [UI + "test_truthful.py::test_samples_of_another_model_are_not_offered"]),
    13: ("the best version follows the noise of timings",
         [UI + "test_truthful.py::test_the_best_version_is_not_chosen_by_noise"]),
    14: ("dropped images are copied without a word",
         [UI + "test_truthful.py::test_a_dropped_image_says_where_it_was_copied"]),
    15: ("the form of boards marks no field and names an unrelated path",
         [UI + "test_truthful.py::test_the_board_form_marks_the_field_that_is_wrong"]),
    16: ("static output shows code as prose, steps as a table, and labels that overlap",
         [WIDGETS + "test_static.py::test_code_in_a_notice_is_code",
          WIDGETS + "test_static.py::test_the_steps_are_a_line_of_tabs_and_not_a_table",
          WIDGETS + "test_static.py::test_no_label_covers_another_or_leaves_its_picture"]),
    17: ("a file that is no model gives a whole traceback",
         [UI + "test_truthful.py::test_a_file_that_is_no_model_is_one_line"]),
    18: ("lite lab asks about news and looks for updates",
         [UI + "test_lab_command.py::test_the_page_asks_no_question_and_looks_for_no_news"]),
    19: ("lite compare --devices needs --backends though each device has one that is obvious",
         ["tests/workbench/test_compare_devices.py::test_each_device_runs_on_its_own_cpu"]),
}  # fmt: skip


@pytest.mark.parametrize("number", MENDED)
def test_its_tests_exist(number: int) -> None:
    what, tests = MENDED[number]
    assert what and tests
    for test in tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        assert name in {f.name for f in tree.body if isinstance(f, ast.FunctionDef)}, test
