/* orbit-audit export: events into a file, and a manifest beside it that is written last: without it the export is not whole. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/manifest.h"
#include "base/guard.h"

enum { write_bytes = 256 * 1024, progress_every = 4096 };

struct export {
  const struct request *request;
  struct scan *scan;
  struct filter *filter;
  struct manifest manifest;
  struct buffer text, line;
  crypto_generichash_state digest;
  int file;
  bool failed;
};

static int say_errno(const char *path, const char *doing) {
  return tool_say(exit_cannot_run, "%s: cannot %s: %s", path, doing, strerror(errno));
}

static bool write_all(int file, struct bytes bytes) {
  while (bytes.size != 0) {
    ssize_t written = write(file, bytes.data, bytes.size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes_of(bytes.data + written, bytes.size - (size_t)written);
  }
  return true;
}

static bool flush(struct export *export) {
  struct bytes bytes = buffer_bytes(&export->text);
  if (export->text.failed) errno = ENOMEM;
  if (export->text.failed || !write_all(export->file, bytes)) export->failed = true;
  (void)crypto_generichash_update(&export->digest, bytes.data, bytes.size);
  export->manifest.bytes += bytes.size;
  buffer_reset(&export->text);
  return !export->failed;
}

static bool is_wanted(struct export *export, const struct event *event) {
  if (!filter_takes(export->filter, event)) return false;
  if (export->request->grep == NULL) return true;
  buffer_reset(&export->line);
  if (export->request->cli.output == OUTPUT_CSV) line_csv(export->request, event, &export->line);
  else line_json(export->request, event, &export->line);
  buffer_append_char(&export->line, 0);
  return filter_line(export->filter, (const char *)export->line.data);
}

static void export_event(struct export *export, const struct event *event) {
  static const struct out plain = {.colour = false};
  line_append(&plain, export->request, event, &export->text);
  export->manifest.events++;
  export->manifest.counts[event->type]++;
}

/* The range, its times, and the chain at both ends. */
static enum status find_range(struct export *export) {
  struct manifest *manifest = &export->manifest;
  const struct request *request = export->request;
  struct event event;
  manifest->first_seq = request->since_us != 0 ? scan_seq_at(export->scan, request->since_us) : 1;
  manifest->last_seq =
      request->until_us != 0 ? scan_seq_at(export->scan, request->until_us + 1) - 1 : scan_last_seq(export->scan);
  if (manifest->last_seq < manifest->first_seq) {
    manifest->last_seq = manifest->first_seq - 1; /* nothing: the chain is the same at both ends */
  } else {
    if (scan_get(export->scan, manifest->first_seq, &event) == STATUS_OK) manifest->first_us = event.time_us;
    if (scan_get(export->scan, manifest->last_seq, &event) == STATUS_OK) manifest->last_us = event.time_us;
  }
  enum status status = scan_chain(export->scan, manifest->first_seq - 1, &manifest->chain_before);
  return status == STATUS_OK ? scan_chain(export->scan, manifest->last_seq, &manifest->chain_after) : status;
}

static void export_range(struct export *export) {
  struct manifest *manifest = &export->manifest;
  struct progress progress;
  struct event event;
  struct bytes record;
  scan_range(export->scan, manifest->first_seq, manifest->last_seq, false);
  progress_begin(&progress, "events", manifest->last_seq - manifest->first_seq + 1);
  for (uint64_t done = 0; !export->failed; done++) {
    struct fault fault = {.message = ""};
    if (done % progress_every == 0) progress_at(&progress, done);
    if (scan_peek(export->scan, &event) && !filter_may(export->filter, &event)) {
      scan_skip(export->scan);
      continue;
    }
    enum status status = scan_next(export->scan, &event, &record, &fault);
    if (status == STATUS_END) break;
    if (status != STATUS_OK) {
      manifest->damaged++;
      (void)tool_say(0, "%s", fault.message);
    } else if (is_wanted(export, &event)) {
      export_event(export, &event);
      if (export->text.size >= write_bytes) (void)flush(export);
    }
  }
  progress_end(&progress);
}

static int make_file(const char *path) { return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600); }

static int write_manifest(struct export *export, const struct export_paths *paths) {
  struct buffer text;
  cleanup(guard_close) int file = make_file(paths->manifest);
  if (file < 0) return say_errno(paths->manifest, "make it");
  buffer_init(&text, SIZE_MAX);
  manifest_write(&text, &export->manifest, export->request, export->scan, paths);
  bool written = !text.failed && write_all(file, buffer_bytes(&text)) && fsync(file) == 0;
  buffer_clear(&text);
  if (written) return exit_done;
  int code = say_errno(paths->manifest, "write it");
  (void)unlink(paths->manifest);
  return code;
}

static int export_into(struct export *export, const struct export_paths *paths) {
  if (find_range(export) != STATUS_OK)
    return tool_say(exit_finding, "the ends of the range cannot be read: run orbit-replay verify, then salvage");
  if (access(paths->manifest, F_OK) == 0) return tool_say(exit_cannot_run, "%s is there already", paths->manifest);
  export->file = make_file(paths->events);
  if (export->file < 0) return say_errno(paths->events, "make it");
  (void)crypto_generichash_init(&export->digest, NULL, 0, file_digest_bytes);
  if (export->request->cli.output == OUTPUT_CSV) line_csv_head(&export->text);
  export_range(export);
  bool written = !export->failed && flush(export) && fsync(export->file) == 0;
  int code = written ? exit_done : say_errno(paths->events, "write it");
  (void)crypto_generichash_final(&export->digest, export->manifest.digest, file_digest_bytes);
  guard_close(&export->file);
  if (code == exit_done) code = write_manifest(export, paths);
  if (code != exit_done) {
    (void)unlink(paths->events);
    return code;
  }
  return export->manifest.damaged == 0
             ? exit_done
             : tool_say(exit_finding, "%" PRIu64 " damaged records are not in the export", export->manifest.damaged);
}

static int check_request(const struct request *request) {
  if (request->cli.output != OUTPUT_JSONL && request->cli.output != OUTPUT_CSV && request->cli.output != OUTPUT_MSGPACK)
    return tool_say(exit_misuse, "an export is jsonl, csv or msgpack");
  return request->cli.argument[0] != 0 ? exit_done : tool_say(exit_misuse, "OUT is empty");
}

/* A name that ends with '/' is a directory, there already or not. */
static int make_directory(const char *out) {
  if (out[strlen(out) - 1] != '/' || mkdir(out, 0700) == 0 || errno == EEXIST) return exit_done;
  return say_errno(out, "make the directory");
}

int audit_export(const struct request *given) {
  struct request request = *given;
  if (!request.cli.has_output) request.cli.output = OUTPUT_JSONL;
  struct export export = {.request = &request, .file = -1};
  struct export_paths paths;
  int code = check_request(&request);
  if (code != exit_done) return code;
  export.scan = scan_new(request.cli.data);
  if (export.scan == NULL) return exit_cannot_run;
  code = make_directory(request.cli.argument);
  if (code == exit_done) {
    export.filter = filter_new(&request, export.scan);
    buffer_init(&export.text, SIZE_MAX);
    buffer_init(&export.line, SIZE_MAX);
    export_paths_init(&paths, request.cli.argument, output_text(request.cli.output));
    code = export_into(&export, &paths);
    export_paths_clear(&paths);
    buffer_clear(&export.text);
    buffer_clear(&export.line);
    filter_free(export.filter);
  }
  scan_free(export.scan);
  return code;
}
