/* orbit-audit verify OUT: is the export what its manifest says, and does its end of the chain stand in the log. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/manifest.h"
#include "base/guard.h"
#include "codec/json.h"

enum { manifest_bytes_max = 1024 * 1024, piece_bytes = 256 * 1024 };

/* What a manifest says, as far as it can be judged. */
struct claim {
  uint64_t version, bytes, events;
  struct bytes file, format, digest, node_id;
  uint32_t range, chain, counts; /* tokens */
  uint64_t first_seq, last_seq;
  struct bytes chain_before, chain_after;
};

struct judging {
  struct json json;
  struct buffer text; /* of the manifest */
  struct claim claim;
  struct out out;
  uint64_t findings;
  uint64_t lines, bytes; /* of the events' file */
};

static void finding(struct judging *judging, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void finding(struct judging *judging, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  judging->findings++;
  buffer_append_format(&judging->out.text, "%s\n", line);
}

/* ---- reading it ---- */

static bool file_read(const char *path, struct buffer *out) {
  char piece[4096];
  size_t got;
  FILE *file = fopen(path, "rbe");
  if (file == NULL) return false;
  while ((got = fread(piece, 1, sizeof piece, file)) > 0) buffer_append(out, piece, got);
  bool whole = ferror(file) == 0 && !out->failed;
  (void)fclose(file);
  return whole;
}

static uint32_t member(struct judging *judging, uint32_t object, const char *name, enum json_type type) {
  uint32_t token = json_member(&judging->json, object, name);
  return token != 0 && judging->json.tokens[token].type == type ? token : 0;
}

static bool take_number(struct judging *judging, uint32_t object, const char *name, uint64_t *ret_number) {
  uint32_t token = member(judging, object, name, JSON_NUMBER);
  struct bytes raw = token != 0 ? json_raw(&judging->json, token) : bytes_text("");
  uint64_t number = 0;
  if (raw.size == 0 || raw.size > 19) return false;
  for (size_t i = 0; i < raw.size; i++) {
    if (raw.data[i] < '0' || raw.data[i] > '9') return false;
    number = number * 10 + (raw.data[i] - UINT64_C(48));
  }
  *ret_number = number;
  return true;
}

static bool take_text(struct judging *judging, uint32_t object, const char *name, struct bytes *ret_text) {
  uint32_t token = member(judging, object, name, JSON_STRING);
  if (token == 0) return false;
  *ret_text = json_string(&judging->json, token);
  return true;
}

static bool read_claim(struct judging *judging) {
  struct claim *claim = &judging->claim;
  struct bytes kind;
  if (!take_text(judging, 0, "manifest", &kind) || !bytes_equal_text(kind, "orbit-audit export")) return false;
  claim->range = member(judging, 0, "range", JSON_OBJECT);
  claim->chain = member(judging, 0, "chain", JSON_OBJECT);
  claim->counts = member(judging, 0, "counts", JSON_OBJECT);
  return claim->range != 0 && claim->chain != 0 && claim->counts != 0 &&
         take_number(judging, 0, "manifest_version", &claim->version) && take_number(judging, 0, "bytes", &claim->bytes) &&
         take_number(judging, 0, "events", &claim->events) && take_text(judging, 0, "file", &claim->file) &&
         take_text(judging, 0, "format", &claim->format) && take_text(judging, 0, "blake2b_256", &claim->digest) &&
         take_text(judging, 0, "node_id", &claim->node_id) &&
         take_number(judging, claim->range, "first_seq", &claim->first_seq) &&
         take_number(judging, claim->range, "last_seq", &claim->last_seq) &&
         take_text(judging, claim->chain, "before_first", &claim->chain_before) &&
         take_text(judging, claim->chain, "after_last", &claim->chain_after);
}

/* ---- judging it ---- */

static bool digest_file(struct judging *judging, const char *path, char out[2 * file_digest_bytes + 1]) {
  crypto_generichash_state state;
  uint8_t digest[file_digest_bytes];
  size_t got;
  FILE *file = fopen(path, "rbe");
  if (file == NULL) return false;
  uint8_t *piece = guard_malloc(piece_bytes);
  (void)crypto_generichash_init(&state, NULL, 0, sizeof digest);
  while ((got = fread(piece, 1, piece_bytes, file)) > 0) {
    (void)crypto_generichash_update(&state, piece, got);
    judging->bytes += got;
    for (const uint8_t *at = piece; (at = memchr(at, '\n', (size_t)(piece + got - at))) != NULL; at++) judging->lines++;
  }
  (void)crypto_generichash_final(&state, digest, sizeof digest);
  for (unsigned i = 0; i < sizeof digest; i++) (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
  bool whole = ferror(file) == 0;
  (void)fclose(file);
  free(piece);
  return whole;
}

static void judge_counts(struct judging *judging) {
  const struct json *json = &judging->json;
  const struct json_token *object = &json->tokens[judging->claim.counts];
  uint64_t total = 0, count;
  uint32_t at = judging->claim.counts + 1;
  for (uint32_t i = 0; i < object->count; i++, at = json->tokens[at + 1].next) {
    char name[64] = "";
    struct bytes text = json_string(&judging->json, at);
    memcpy(name, text.data, text.size < sizeof name ? text.size : sizeof name - 1);
    if (take_number(judging, judging->claim.counts, name, &count)) total += count;
    else finding(judging, "manifest: the count of %s is no number", name);
  }
  if (total != judging->claim.events)
    finding(judging, "manifest: its counts add up to %" PRIu64 ", not to %" PRIu64 " events", total, judging->claim.events);
}

static int judge_file(struct judging *judging, const char *path) {
  const struct claim *claim = &judging->claim;
  char digest[2 * file_digest_bytes + 1];
  if (!digest_file(judging, path, digest)) return tool_say(exit_cannot_run, "%s: cannot read it: %s", path, strerror(errno));
  if (judging->bytes != claim->bytes)
    finding(judging, "%s: %" PRIu64 " bytes, the manifest says %" PRIu64, path, judging->bytes, claim->bytes);
  if (!bytes_equal_text(claim->digest, digest)) finding(judging, "%s: its BLAKE2b-256 is %s, not the manifest's", path, digest);
  uint64_t head = bytes_equal_text(claim->format, "csv") ? 1 : 0;
  if (!bytes_equal_text(claim->format, "msgpack") && judging->lines != claim->events + head)
    finding(judging, "%s: %" PRIu64 " events, the manifest says %" PRIu64, path, judging->lines - head, claim->events);
  judge_counts(judging);
  return exit_done;
}

static void judge_chain(struct judging *judging, struct scan *scan, uint64_t seq, struct bytes claimed) {
  char text[17];
  uint64_t chain;
  if (scan_chain(scan, seq, &chain) != STATUS_OK) {
    finding(judging, "seq %" PRIu64 ": the log does not have it", seq);
    return;
  }
  (void)snprintf(text, sizeof text, "%016" PRIx64, chain);
  if (!bytes_equal_text(claimed, text))
    finding(judging, "seq %" PRIu64 ": the log's chain is %s there, not the manifest's %.*s", seq, text, (int)claimed.size,
            (const char *)claimed.data);
}

/* Against the log it was made from, when that is at hand. */
static int judge_log(struct judging *judging, const char *data) {
  const struct claim *claim = &judging->claim;
  struct log_origin origin = {.format = 0};
  struct scan *scan = scan_new(data);
  if (scan == NULL) return exit_cannot_run;
  (void)scan_origin(scan, &origin);
  if (!bytes_equal_text(claim->node_id, id_text(&origin.node_id).text))
    finding(judging, "the log was made by node %s, the export says %.*s", id_text(&origin.node_id).text,
            (int)claim->node_id.size, (const char *)claim->node_id.data);
  if (claim->first_seq != 0) judge_chain(judging, scan, claim->first_seq - 1, claim->chain_before);
  judge_chain(judging, scan, claim->last_seq, claim->chain_after);
  scan_free(scan);
  return exit_done;
}

/* The events' file lies beside its manifest, under the name that stands there. */
static char *events_path(const struct judging *judging, const char *manifest) {
  const char *slash = strrchr(manifest, '/');
  char *path = NULL;
  struct bytes name = judging->claim.file;
  if (memchr(name.data, '/', name.size) != NULL) return NULL;
  int size = slash != NULL ? (int)(slash - manifest) + 1 : 0;
  return asprintf(&path, "%.*s%.*s", size, manifest, (int)name.size, (const char *)name.data) > 0 ? path : NULL;
}

static int judge_export(struct judging *judging, const char *manifest, const char *data) {
  struct fault fault = {.message = ""};
  if (!file_read(manifest, &judging->text))
    return tool_say(exit_cannot_run, "%s: cannot read it: %s", manifest, strerror(errno));
  if (json_parse(&judging->json, buffer_bytes(&judging->text), &fault) != STATUS_OK)
    return tool_say(exit_finding, "%s: %s", manifest, fault.message);
  if (judging->json.tokens[0].type != JSON_OBJECT || !read_claim(judging))
    return tool_say(exit_finding, "%s: it is no manifest of orbit-audit, or lacks a part", manifest);
  if (judging->claim.version != manifest_version)
    return tool_say(exit_cannot_run, "%s: manifest version %" PRIu64 ", this program reads %d", manifest,
                    judging->claim.version, manifest_version);
  cleanup(guard_free) char *events = events_path(judging, manifest);
  if (events == NULL) return tool_say(exit_finding, "%s: it names no file beside itself", manifest);
  int code = judge_file(judging, events);
  if (code == exit_done && data != NULL) code = judge_log(judging, data);
  if (code != exit_done) return code;
  buffer_append_format(&judging->out.text, "%" PRIu64 " events, seq %" PRIu64 " to %" PRIu64 ", %s, %" PRIu64 " findings\n",
                       judging->claim.events, judging->claim.first_seq, judging->claim.last_seq,
                       data != NULL ? "chain compared with the log" : "not compared with a log", judging->findings);
  return judging->findings == 0 ? exit_done : exit_finding;
}

int manifest_verify(const struct request *request) {
  struct judging judging = {.findings = 0};
  size_t size = strlen(request->cli.argument);
  char *manifest = NULL;
  int made = export_is_directory(request->cli.argument) ? asprintf(&manifest, "%s%smanifest.json", request->cli.argument,
                                                                   request->cli.argument[size - 1] == '/' ? "" : "/")
             : size > 5 && strcmp(request->cli.argument + size - 5, ".json") == 0
                 ? asprintf(&manifest, "%s", request->cli.argument)
                 : asprintf(&manifest, "%s.manifest.json", request->cli.argument);
  must(made > 0);
  json_init(&judging.json);
  buffer_init(&judging.text, manifest_bytes_max);
  out_begin(&judging.out);
  int code = out_end(&judging.out, judge_export(&judging, manifest, request->cli.data));
  buffer_clear(&judging.text);
  json_clear(&judging.json);
  free(manifest);
  return code;
}
