/* orbit-audit verify: the chain of the log, and its audit: every change with its record, every record with its change. One
 * finding a line. The file is read by the walker, never through liblmdb: it may be damaged anywhere. */
#include <inttypes.h>

#include "audit/check.h"
#include "audit/manifest.h"
#include "reading/judging.h"

struct verify {
  struct judging judging;
  struct check check;
};

static void finding(void *context, uint64_t seq, const char *what) {
  struct verify *verify = context;
  judging_finding(&verify->judging, seq, what, "");
}

static void take_event(void *context, const struct event *event, struct bytes record) {
  struct verify *verify = context;
  (void)record;
  check_event(&verify->check, event);
}

static void lose(void *context, uint64_t seq) {
  struct verify *verify = context;
  (void)seq;
  check_gap(&verify->check);
}

static int verify_log(const struct request *request) {
  static struct verify verify = {.judging = {.event = take_event, .lost = lose, .context = &verify}};
  check_begin(&verify.check, finding, &verify);
  int code = judging_begin(&verify.judging, request->cli.data);
  if (code == exit_done) code = judging_walk(&verify.judging);
  if (code == exit_done) {
    check_end(&verify.check);
    buffer_append_format(&verify.judging.out.text, "%" PRIu64 " audit records\n", verify.check.record_total);
    code = judging_sum(&verify.judging);
  }
  return judging_end(&verify.judging, code);
}

int audit_verify(const struct request *request) {
  if (request->cli.has_output && request->cli.output != OUTPUT_TEXT) return tool_say(exit_misuse, "verify prints text");
  return request->cli.argument != NULL ? manifest_verify(request) : verify_log(request);
}
