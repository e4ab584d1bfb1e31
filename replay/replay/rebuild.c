/* orbit-replay rebuild DIR: the views made from the log alone, as the server's follower makes them, in a new directory; then
 * loaded back and judged. DIR may take the place of DATA/views while no server runs. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "replay/replay.h"
#include "state/checkpoint.h"

static enum status follow_all(struct journal *journal, const char *directory, struct fault *fault) {
  struct checkpoint *checkpoint;
  struct progress progress;
  uint64_t events = 1;
  enum status status = checkpoint_open(directory, 0, journal, &checkpoint, fault);
  if (status != STATUS_OK) return status;
  progress_begin(&progress, "events", journal_last_seq(journal));
  while (status == STATUS_OK && events != 0) {
    status = checkpoint_follow(checkpoint, checkpoint_batch_events, &events, fault);
    progress_at(&progress, checkpoint_seq(checkpoint));
  }
  progress_end(&progress);
  checkpoint_close(checkpoint);
  return status;
}

static int print(const struct state *state, enum output output) {
  static const char *const columns[] = {"seq", "tasks", "digest"};
  struct id digest = state_digest(state);
  struct table table;
  table_begin(&table, output, columns, 3);
  table.numbers[0] = table.numbers[1] = true;
  table_cell(&table, "%" PRIu64, state_last_seq(state));
  table_cell(&table, "%" PRIu64, state_task_count(state));
  table_cell(&table, "%s", id_text(&digest).text);
  return table_end(&table);
}

static int rebuild(struct journal *journal, const struct request *request) {
  struct state *state;
  struct checkpoint_position position;
  struct fault fault = {0};
  enum status status = follow_all(journal, request->cli.argument, &fault);
  if (status == STATUS_OK) status = checkpoint_load(request->cli.argument, journal, &state, &position, &fault);
  if (status != STATUS_OK) {
    (void)checkpoint_remove(request->cli.argument);
    return tool_say(status == STATUS_CORRUPT || status == STATUS_FOREIGN ? exit_finding : exit_cannot_run, "%s", fault.message);
  }
  int code = exit_done;
  if (state_check(state, &fault) != STATUS_OK) code = tool_say(exit_finding, "%s", fault.message);
  else code = print(state, request->cli.output);
  state_free(state);
  return code;
}

int replay_rebuild(const struct request *request) {
  struct journal *journal;
  struct stat found;
  if (lstat(request->cli.argument, &found) == 0)
    return tool_say(exit_finding, "%s exists: name a new directory", request->cli.argument);
  int code = reading_open(request->cli.data, &journal);
  if (code != exit_done) return code;
  code = journal_last_seq(journal) != 0 ? rebuild(journal, request)
                                        : tool_say(exit_finding, "%s: the log is empty", request->cli.data);
  journal_close(journal, false);
  return code;
}
