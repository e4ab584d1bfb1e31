/* Owns the reading of the system's time zones and the list of their names. */
#include "engine/zones.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/limits.h"

const char zones_directory[] = "/usr/share/zoneinfo";

struct named_zone {
  char name[timezone_chars_max + 1];
  struct zone *zone;
};

struct zones {
  char *directory;
  struct buffer names; /* each between two line feeds */
  bool listed;
  struct named_zone *loaded; /* a few: as many as schedules name */
  uint32_t count, capacity;
};

struct zones *zones_new(const char *directory) {
  struct zones *zones = guard_calloc(1, sizeof *zones);
  zones->directory = strdup(directory != NULL ? directory : zones_directory);
  if (zones->directory == NULL) guard_failed("strdup", __FILE__, __LINE__, "out of memory");
  buffer_init(&zones->names, zone_list_bytes_max);
  return zones;
}

void zones_free(struct zones *zones) {
  if (zones == NULL) return;
  for (uint32_t i = 0; i < zones->count; i++) zone_free(zones->loaded[i].zone);
  free(zones->loaded);
  buffer_clear(&zones->names);
  free(zones->directory);
  free(zones);
}

/* ---- files ---- */

/* The whole file behind what is in out. False: it is not there, too large, or cannot be read. */
static bool read_file(const struct zones *zones, const char *name, struct buffer *out) {
  char path[512];
  int length = snprintf(path, sizeof path, "%s/%s", zones->directory, name);
  if (length < 0 || (size_t)length >= sizeof path) return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return false;
  ssize_t got = 0;
  do {
    uint8_t *room = buffer_reserve(out, 64 * 1024);
    got = room != NULL ? read(fd, room, 64 * 1024) : -1;
    if (got > 0) buffer_commit(out, (size_t)got);
  } while (got > 0);
  (void)close(fd);
  return got == 0;
}

/* ---- names ---- */

static void add_name(struct zones *zones, struct bytes name) {
  if (name.size == 0 || name.size > timezone_chars_max) return;
  buffer_append_bytes(&zones->names, name);
  buffer_append_char(&zones->names, '\n');
}

/* The word-th word of the line, words being parted by one of these characters; empty: there is none. */
static struct bytes word_of(struct bytes line, unsigned word, const char *between) {
  size_t at = 0;
  for (;; word--) {
    size_t start = at;
    while (at < line.size && strchr(between, line.data[at]) == NULL) at++;
    if (word == 0) return bytes_of(line.data + start, at - start);
    if (at == line.size) return (struct bytes){NULL, 0};
    at++;
  }
}

/* tzdata.zi: "Z NAME …" begins a zone, "L TARGET NAME" is another name of one. The tables: "CODES<tab>COORDINATES<tab>NAME…".
 */
static void take_line(struct zones *zones, struct bytes line, bool compact) {
  if (line.size == 0 || line.data[0] == '#') return;
  if (!compact) add_name(zones, word_of(line, 2, "\t"));
  else if (line.data[0] == 'Z' && line.size > 1 && line.data[1] == ' ') add_name(zones, word_of(line, 1, " "));
  else if (line.data[0] == 'L' && line.size > 1 && line.data[1] == ' ') add_name(zones, word_of(line, 2, " "));
}

static bool take_list(struct zones *zones, const char *file, bool compact) {
  cleanup(buffer_clear) struct buffer text;
  buffer_init(&text, zone_list_bytes_max);
  if (!read_file(zones, file, &text)) return false;
  for (size_t at = 0; at < text.size;) {
    const uint8_t *end = memchr(text.data + at, '\n', text.size - at);
    size_t length = end != NULL ? (size_t)(end - text.data) - at : text.size - at;
    take_line(zones, bytes_of(text.data + at, length), compact);
    at += length + 1;
  }
  return true;
}

static void list_names(struct zones *zones) {
  if (zones->listed) return;
  buffer_append_char(&zones->names, '\n');
  bool listed = take_list(zones, "tzdata.zi", true);
  if (!listed) {
    bool newer = take_list(zones, "zone1970.tab", false), older = take_list(zones, "zone.tab", false);
    listed = newer || older;
  }
  zones->listed = listed && !zones->names.failed;
  if (!zones->listed) buffer_reset(&zones->names); /* the next one who asks looks again */
}

static bool is_listed(struct zones *zones, struct bytes name) {
  char line[timezone_chars_max + 3];
  if (name.size == 0 || name.size > timezone_chars_max || memchr(name.data, '\n', name.size) != NULL) return false;
  list_names(zones);
  int length = snprintf(line, sizeof line, "\n%.*s\n", (int)name.size, (const char *)name.data);
  if (length != (int)name.size + 2 || zones->names.size == 0) return false; /* a NUL within */
  return memmem(zones->names.data, zones->names.size, line, (size_t)length) != NULL;
}

/* ---- zones ---- */

static const struct zone *keep(struct zones *zones, struct bytes name, struct zone *zone) {
  if (zones->count == zones->capacity) {
    zones->capacity = zones->capacity != 0 ? zones->capacity * 2 : 8;
    zones->loaded = guard_realloc(zones->loaded, sizeof *zones->loaded * zones->capacity);
  }
  struct named_zone *named = &zones->loaded[zones->count++];
  *named = (struct named_zone){.zone = zone};
  memcpy(named->name, name.data, name.size);
  return zone;
}

static enum status load(struct zones *zones, struct bytes name, struct zone **ret_zone) {
  char path[timezone_chars_max + 1];
  cleanup(buffer_clear) struct buffer file;
  buffer_init(&file, zone_file_bytes_max + 64 * 1024);
  (void)snprintf(path, sizeof path, "%.*s", (int)name.size, (const char *)name.data);
  if (!read_file(zones, path, &file)) return STATUS_IO_ERROR;
  return zone_parse(buffer_bytes(&file), ret_zone);
}

enum status zones_get(struct zones *zones, struct bytes name, const struct zone **ret_zone, struct fault *fault) {
  struct zone *zone = NULL;
  for (uint32_t i = 0; i < zones->count; i++) {
    if (!bytes_equal_text(name, zones->loaded[i].name)) continue;
    *ret_zone = zones->loaded[i].zone;
    return STATUS_OK;
  }
  if (bytes_equal_text(name, "UTC")) {
    *ret_zone = keep(zones, name, zone_utc());
    return STATUS_OK;
  }
  if (!is_listed(zones, name)) {
    if (!zones->listed) return fault_set(fault, STATUS_UNAVAILABLE, NULL, "the system has no list of time zones (tzdata)");
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "/timezone", "the system knows no time zone of this name");
  }
  if (load(zones, name, &zone) != STATUS_OK)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "the time zone is in the system's list but cannot be read");
  *ret_zone = keep(zones, name, zone);
  return STATUS_OK;
}
