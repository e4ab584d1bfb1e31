/* Owns the text of a manifest and the names of an export's files. */
#include "audit/manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/guard.h"
#include "base/time_text.h"
#include "codec/json.h"
#include "reading/when.h"

/* ---- names ---- */

bool export_is_directory(const char *out) {
  struct stat found;
  size_t size = strlen(out);
  return (size != 0 && out[size - 1] == '/') || (stat(out, &found) == 0 && S_ISDIR(found.st_mode));
}

static char *path_make(const char *head, const char *middle, const char *tail) {
  char *path = NULL;
  int made = asprintf(&path, "%s%s%s", head, middle, tail);
  must(made > 0);
  return path;
}

void export_paths_init(struct export_paths *paths, const char *out, const char *format) {
  size_t size = strlen(out);
  if (export_is_directory(out)) {
    const char *slash = size != 0 && out[size - 1] == '/' ? "" : "/";
    char *head = path_make(out, slash, "events.");
    paths->events = path_make(head, format, "");
    paths->manifest = path_make(out, slash, "manifest.json");
    free(head);
  } else {
    paths->events = path_make(out, "", "");
    paths->manifest = path_make(out, ".manifest", ".json");
  }
  const char *slash = strrchr(paths->events, '/');
  paths->name = slash != NULL ? slash + 1 : paths->events;
}

void export_paths_clear(struct export_paths *paths) {
  free(paths->events);
  free(paths->manifest);
}

/* ---- its text ---- */

static void put_name(struct buffer *out, const char *name) {
  buffer_append_text(out, "  ");
  json_write_string(out, bytes_text(name));
  buffer_append_text(out, ": ");
}

/* Names of files may hold any bytes; the manifest is JSON. */
static void put_text(struct buffer *out, const char *name, const char *text) {
  put_name(out, name);
  json_write_string(out, bytes_is_utf8(bytes_text(text)) ? bytes_text(text) : bytes_text("(a name that is not UTF-8)"));
  buffer_append_text(out, ",\n");
}

static void put_number(struct buffer *out, const char *name, uint64_t number) {
  put_name(out, name);
  buffer_append_format(out, "%" PRIu64 ",\n", number);
}

static void put_time(struct buffer *out, const char *name, int64_t time_us, const char *end) {
  char time[time_chars_max + 1] = "";
  if (time_has_text(time_us)) time[time_format(time_us, time)] = 0;
  buffer_append_format(out, "\"%s\": \"%s\"%s", name, time, end);
}

static void put_wish(struct buffer *out, bool *first, const char *name, const char *text) {
  buffer_append_format(out, "%s\"%s\": ", *first ? "" : ", ", name);
  json_write_string(out, bytes_is_utf8(bytes_text(text)) ? bytes_text(text) : bytes_text("(not UTF-8)"));
  *first = false;
}

static void put_id_wish(struct buffer *out, bool *first, const char *name, const struct id *id) {
  if (!id_is_zero(id)) put_wish(out, first, name, id_text(id).text);
}

static void put_time_wish(struct buffer *out, bool *first, const char *name, int64_t time_us) {
  if (time_us == 0) return;
  if (!*first) buffer_append_text(out, ", ");
  put_time(out, name, time_us, "");
  *first = false;
}

/* What was asked for; {} when everything was. */
static void put_filter(struct buffer *out, const struct request *request) {
  bool first = true;
  put_name(out, "filter");
  buffer_append_char(out, '{');
  put_time_wish(out, &first, "since", request->since_us);
  put_time_wish(out, &first, "until", request->until_us);
  put_id_wish(out, &first, "task", &request->task);
  put_id_wish(out, &first, "queue", &request->queue);
  put_id_wish(out, &first, "actor", &request->actor);
  put_id_wish(out, &first, "operation", &request->operation);
  if (request->action != NULL) put_wish(out, &first, "action", request->action);
  if (request->grep != NULL) put_wish(out, &first, "grep", request->grep);
  for (unsigned i = 0; i < request->type_count; i++) {
    buffer_append_text(out, i != 0 ? "," : first ? "\"types\": [" : ", \"types\": [");
    json_write_string(out, bytes_text(request->types[i]));
  }
  buffer_append_text(out, request->type_count != 0 ? "]},\n" : "},\n");
}

static void put_counts(struct buffer *out, const struct manifest *manifest) {
  const char *comma = "";
  put_name(out, "counts");
  buffer_append_char(out, '{');
  for (unsigned type = 1; type < EVENT_type_end; type++) {
    if (manifest->counts[type] == 0) continue;
    buffer_append_format(out, "%s\"%s\": %" PRIu64, comma, event_type_text((enum event_type)type), manifest->counts[type]);
    comma = ", ";
  }
  buffer_append_text(out, "}\n");
}

void manifest_write(struct buffer *out, const struct manifest *manifest, const struct request *request, const struct scan *scan,
                    const struct export_paths *paths) {
  struct log_origin origin = {.format = 0}; /* zero: the log does not say who made it */
  (void)scan_origin(scan, &origin);
  char digest[2 * file_digest_bytes + 1];
  for (unsigned i = 0; i < file_digest_bytes; i++) (void)snprintf(digest + 2 * i, 3, "%02x", manifest->digest[i]);
  buffer_append_text(out, "{\n");
  put_text(out, "manifest", "orbit-audit export");
  put_number(out, "manifest_version", manifest_version);
  put_text(out, "tool_version", ORBIT_VERSION);
  buffer_append_text(out, "  ");
  put_time(out, "made_at", when_now_us(), ",\n");
  put_text(out, "node_id", id_text(&origin.node_id).text);
  put_number(out, "log_format", origin.format);
  buffer_append_text(out, "  ");
  put_time(out, "log_created_at", origin.created_us, ",\n");
  put_text(out, "file", paths->name);
  put_text(out, "format", output_text(request->cli.output));
  put_number(out, "bytes", manifest->bytes);
  put_text(out, "blake2b_256", digest);
  put_name(out, "range");
  buffer_append_format(out, "{\"first_seq\": %" PRIu64 ", \"last_seq\": %" PRIu64 ", ", manifest->first_seq,
                       manifest->last_seq);
  put_time(out, "first_time", manifest->first_us, ", ");
  put_time(out, "last_time", manifest->last_us, "},\n");
  put_name(out, "chain");
  buffer_append_format(out, "{\"before_first\": \"%016" PRIx64 "\", \"after_last\": \"%016" PRIx64 "\"},\n",
                       manifest->chain_before, manifest->chain_after);
  put_filter(out, request);
  put_name(out, "payload");
  buffer_append_text(out, request->payload ? "true,\n" : "false,\n");
  put_number(out, "damaged", manifest->damaged);
  put_number(out, "events", manifest->events);
  put_counts(out, manifest);
  buffer_append_text(out, "}\n");
}
