/* The state machine: its rows, one by one, and nothing else. */
#include "core/transition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model.h"
#include "support/support.h"

/* One character a cell: where the event leads from the state of the column; lower case: it stays, the revision too. Columns: no
 * task yet, WAITING, LEASED, RUNNING, NEEDS_REVIEW, SUCCEEDED, FAILED, CANCELLED. B: both SUCCEEDED and FAILED. */
static const struct {
  const char *event;
  const char *cells;
} table[] = {
    /* clang-format off */
    /*                         - W L R N S F C */
    {"task.accepted",         "W - - - - - - -"},
    {"task.leased",           "- L - - - - - -"},
    {"task.started",          "- - R - - - - -"},
    {"attempt.result",        "- - - r - - - -"},
    {"attempt.ended",         "- - l r - - - -"},
    {"task.requeued",         "- - W W - - - -"},
    {"task.succeeded",        "- - - S - - - -"},
    {"task.failed",           "- F F F - - - -"},
    {"task.review_required",  "- N N N - - - -"},
    {"task.cancelled",        "- C C C - - - -"},
    {"task.cancel_requested", "- w l R N - - -"},
    {"task.reviewed",         "- - - - B - - -"},
    {"task.retried",          "- - - - - - f c"},
    {"evidence.recorded",     "- w l r n s f c"},
    {"audit.recorded",        "- w l r n s f c"},
    /* clang-format on */
};

static const char letters[] = "-WLRNSFC";

static char cell_of(enum task_state from, enum event_type event) {
  const struct transition *row = transition_find(from, event);
  if (row == NULL) return '-';
  assert_int_equal(row->from, from);
  assert_int_equal(row->event, event);
  assert_true(transition_allows(from, event, row->to));
  if (transition_allows(from, event, TASK_SUCCEEDED) && transition_allows(from, event, TASK_FAILED)) return 'B';
  if (!row->raises_revision) assert_int_equal(row->to, from);
  char letter = letters[row->to];
  return row->raises_revision ? letter : (char)(letter - 'A' + 'a');
}

static void every_cell(void **state) {
  (void)state;
  for (unsigned number = 0; number < EVENT_type_end; number++) {
    enum event_type event = (enum event_type)number;
    const char *cells = "- - - - - - - -"; /* an event that is not the task's fits nowhere */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
      if (strcmp(table[i].event, event_type_text(event)) == 0) cells = table[i].cells;
    for (unsigned from = TASK_NONE; from < TASK_ENUM_END; from++)
      if (cell_of((enum task_state)from, event) != cells[2 * from])
        fail_msg("%s in %s: %c, not %c", event_type_text(event), task_state_text((enum task_state)from),
                 cell_of((enum task_state)from, event), cells[2 * from]);
  }
}

static void rows_are_as_many_as_cells(void **state) {
  (void)state;
  size_t count, cells = 0;
  const struct transition *rows = transition_rows(&count);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    for (const char *c = table[i].cells; *c != 0; c++) cells += *c == 'B' ? 2 : *c != ' ' && *c != '-';
  assert_int_equal(count, cells);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < i; k++)
      assert_false(rows[i].from == rows[k].from && rows[i].event == rows[k].event && rows[i].to == rows[k].to);
}

/* The cell as schema/semantics.md writes it. */
static const char *cell_text(char cell) {
  if (cell == '-') return "–";
  if (cell == 'B') return "SUCCEEDED or FAILED";
  for (unsigned to = TASK_WAITING; to < TASK_ENUM_END; to++)
    if (letters[to] == cell) return task_state_text((enum task_state)to);
  return "stays";
}

static void the_document_says_the_same(void **state) {
  (void)state;
  struct bytes page = test_file_read(ORBIT_SOURCE_DIR "/schema/semantics.md");
  assert_non_null(page.data);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    char row[300];
    size_t used = (size_t)snprintf(row, sizeof row, "\n| %s |", table[i].event);
    for (const char *cell = table[i].cells; *cell != 0; cell++)
      if (*cell != ' ') used += (size_t)snprintf(row + used, sizeof row - used, " %s |", cell_text(*cell));
    (void)snprintf(row + used, sizeof row - used, "\n");
    if (memmem(page.data, page.size, row, strlen(row)) == NULL) fail_msg("schema/semantics.md has no row:%s", row);
  }
  free((void *)(uintptr_t)page.data);
}

static void a_terminal_task_never_changes(void **state) {
  (void)state;
  size_t count;
  const struct transition *rows = transition_rows(&count);
  for (size_t i = 0; i < count; i++)
    if (task_state_is_terminal(rows[i].from)) assert_true(rows[i].to == rows[i].from && !rows[i].raises_revision);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_cell),
      cmocka_unit_test(rows_are_as_many_as_cells),
      cmocka_unit_test(the_document_says_the_same),
      cmocka_unit_test(a_terminal_task_never_changes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
