/* Owns the simulated store of views/: rows in the order of their keys, and what was there before a transaction. */
#include "sim/views.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/limits.h"

struct row {
  uint32_t key_size, value_size;
  uint8_t bytes[]; /* key, value */
};

struct table {
  struct row **rows; /* in the order of keys */
  uint64_t count, capacity;
};

/* What a transaction did to one key. */
struct change {
  unsigned table;
  struct row *before; /* NULL: it was not there */
  struct row *after;  /* NULL: it is not there any more */
};

struct views_disk {
  bool there, open;
  struct table tables[views_tables_max];
  enum views_fate fate, came;
};

struct views {
  struct views_disk *disk;
  unsigned table_count;
  bool read_only, reading, writing;
  unsigned readers; /* with a snapshot */
  struct change *changes;
  uint64_t change_count, change_capacity;
};

struct views_reader {
  struct views *views;
  bool reading;
};

/* A path names no disk of a simulation: the mounted one is meant, whatever the path. */
static struct views_disk *mounted;

struct views_disk *views_disk_new(void) {
  return guard_calloc(1, sizeof(struct views_disk));
}

static void disk_empty(struct views_disk *disk) {
  for (unsigned i = 0; i < views_tables_max; i++) {
    struct table *table = &disk->tables[i];
    for (uint64_t at = 0; at < table->count; at++) free(table->rows[at]);
    table->count = 0;
  }
  disk->there = false;
}

void views_disk_free(struct views_disk *disk) {
  if (disk == NULL) return;
  must(!disk->open);
  disk_empty(disk);
  for (unsigned i = 0; i < views_tables_max; i++) free(disk->tables[i].rows);
  free(disk);
}

void views_disk_mount(struct views_disk *disk) { mounted = disk; }

void views_disk_set_fate(struct views_disk *disk, enum views_fate fate) {
  disk->fate = fate;
  disk->came = VIEWS_GOOD;
}
enum views_fate views_disk_fate_came(const struct views_disk *disk) { return disk->came; }

/* True: the fate that was set is one of these, and has come. */
static bool fate_comes(struct views_disk *disk, enum views_fate first, enum views_fate last) {
  if (disk->fate < first || disk->fate > last) return false;
  disk->came = disk->fate;
  disk->fate = VIEWS_GOOD;
  return true;
}

/* ---- rows ---- */

static struct row *row_new(struct bytes key, struct bytes value) {
  struct row *row = guard_malloc(sizeof *row + key.size + value.size);
  row->key_size = (uint32_t)key.size;
  row->value_size = (uint32_t)value.size;
  memcpy(row->bytes, key.data, key.size);
  if (value.size != 0) memcpy(row->bytes + key.size, value.data, value.size);
  return row;
}

static struct bytes key_of(const struct row *row) { return bytes_of(row->bytes, row->key_size); }
static struct bytes value_of(const struct row *row) { return bytes_of(row->bytes + row->key_size, row->value_size); }

static int key_compare(struct bytes a, struct bytes b) {
  size_t size = a.size < b.size ? a.size : b.size;
  int order = memcmp(a.data, b.data, size);
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size;
}

/* The place of the first row whose key is not below. */
static uint64_t place_of(const struct table *table, struct bytes key) {
  uint64_t low = 0, high = table->count;
  if (high != 0 && key_compare(key_of(table->rows[high - 1]), key) < 0) return high;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (key_compare(key_of(table->rows[middle]), key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool stands_at(const struct table *table, uint64_t place, struct bytes key) {
  return place < table->count && key_compare(key_of(table->rows[place]), key) == 0;
}

/* The row (NULL: none) takes the place of what stands under the key. Returns that, NULL where nothing did. */
static struct row *table_set(struct table *table, struct bytes key, struct row *row) {
  uint64_t place = place_of(table, key);
  struct row *before = stands_at(table, place, key) ? table->rows[place] : NULL;
  if (before != NULL && row != NULL) {
    table->rows[place] = row;
  } else if (row != NULL) {
    if (table->count == table->capacity) {
      table->capacity = table->capacity * 2 + 64;
      table->rows = guard_realloc(table->rows, table->capacity * sizeof(struct row *));
    }
    memmove(table->rows + place + 1, table->rows + place, (table->count - place) * sizeof(struct row *));
    table->rows[place] = row;
    table->count++;
  } else if (before != NULL) {
    table->count--;
    memmove(table->rows + place, table->rows + place + 1, (table->count - place) * sizeof(struct row *));
  }
  return before;
}

/* ---- opening ---- */

enum status views_open(const char *directory, const struct views_options *options, struct views **ret_views,
                       struct fault *fault) {
  must(mounted != NULL && !mounted->open && options->table_count <= views_tables_max);
  if (options->read_only && !mounted->there) return fault_set(fault, STATUS_NOT_FOUND, NULL, "%s: there is none", directory);
  struct views *views = guard_calloc(1, sizeof *views);
  views->disk = mounted;
  views->table_count = options->table_count;
  views->read_only = options->read_only;
  mounted->there = mounted->open = true;
  *ret_views = views;
  return STATUS_OK;
}

void views_close(struct views *views) {
  if (views == NULL) return;
  must(views->readers == 0);
  views_abort(views);
  views->disk->open = false;
  free(views->changes);
  free(views);
}

enum status views_remove(const char *directory) {
  (void)directory;
  must(mounted != NULL && !mounted->open);
  disk_empty(mounted);
  return STATUS_OK;
}

/* ---- transactions ---- */

enum status views_begin(struct views *views, bool write, struct fault *fault) {
  (void)fault;
  must(!views->reading && !views->writing && !(write && views->read_only));
  views->reading = !write;
  views->writing = write;
  return STATUS_OK;
}

static void change_add(struct views *views, struct change change) {
  if (views->change_count == views->change_capacity) {
    views->change_capacity = views->change_capacity * 2 + 64;
    views->changes = guard_realloc(views->changes, views->change_capacity * sizeof *views->changes);
  }
  views->changes[views->change_count++] = change;
}

/* What was replaced is needed no more. */
static void settle(struct views *views) {
  for (uint64_t i = 0; i < views->change_count; i++) free(views->changes[i].before);
  views->change_count = 0;
  views->reading = views->writing = false;
}

void views_abort(struct views *views) {
  while (views->change_count != 0) {
    struct change change = views->changes[--views->change_count];
    struct bytes key = key_of(change.before != NULL ? change.before : change.after);
    (void)table_set(&views->disk->tables[change.table], key, change.before);
    free(change.after);
  }
  views->reading = views->writing = false;
}

enum status views_commit(struct views *views, struct fault *fault) {
  struct views_disk *disk = views->disk;
  must(views->reading || views->writing);
  must(!views->writing || views->readers == 0); /* a snapshot would see what came after it */
  if (!views->writing || !fate_comes(disk, VIEWS_FULL, VIEWS_KEPT)) {
    settle(views);
    return STATUS_OK;
  }
  if (disk->came == VIEWS_KEPT) settle(views);
  else views_abort(views);
  return fault_set(fault, disk->came == VIEWS_FULL ? STATUS_NO_SPACE : STATUS_IO_ERROR, NULL, "the simulated store failed");
}

/* ---- reading and writing ---- */

static struct table *table_of(const struct views *views, unsigned table) {
  must(table < views->table_count);
  return &views->disk->tables[table];
}

static enum status get(const struct table *table, struct bytes key, struct bytes *ret_value) {
  uint64_t place = place_of(table, key);
  if (!stands_at(table, place, key)) return STATUS_END;
  *ret_value = value_of(table->rows[place]);
  return STATUS_OK;
}

static enum status show(const struct table *table, uint64_t place, struct bytes *ret_key, struct bytes *ret_value) {
  if (place >= table->count) return STATUS_END;
  *ret_key = key_of(table->rows[place]);
  *ret_value = value_of(table->rows[place]);
  return STATUS_OK;
}

enum status views_get(struct views *views, unsigned table, struct bytes key, struct bytes *ret_value) {
  must(views->reading || views->writing);
  if (views->writing && fate_comes(views->disk, VIEWS_DAMAGED, VIEWS_DAMAGED)) return STATUS_CORRUPT;
  return get(table_of(views, table), key, ret_value);
}

enum status views_put(struct views *views, unsigned table, struct bytes key, struct bytes value, bool append) {
  must(views->writing);
  (void)append;
  struct row *row = row_new(key, value);
  struct row *before = table_set(table_of(views, table), key_of(row), row);
  change_add(views, (struct change){table, before, row});
  return STATUS_OK;
}

enum status views_delete(struct views *views, unsigned table, struct bytes key) {
  must(views->writing);
  struct row *before = table_set(table_of(views, table), key, NULL);
  if (before != NULL) change_add(views, (struct change){table, before, NULL});
  return STATUS_OK;
}

uint64_t views_count(struct views *views, unsigned table) { return table_of(views, table)->count; }

enum status views_each(struct views *views, unsigned table, views_visit *visit, void *context) {
  const struct table *rows = table_of(views, table);
  enum status status = STATUS_OK;
  must(views->reading || views->writing);
  for (uint64_t at = 0; at < rows->count && status == STATUS_OK; at++)
    status = visit(context, key_of(rows->rows[at]), value_of(rows->rows[at]));
  return status;
}

enum status views_from(struct views *views, unsigned table, struct bytes key, struct bytes *ret_key, struct bytes *ret_value) {
  const struct table *rows = table_of(views, table);
  must(views->reading || views->writing);
  return show(rows, place_of(rows, key), ret_key, ret_value);
}

/* ---- readers ---- */

enum status views_reader_new(struct views *views, struct views_reader **ret_reader, struct fault *fault) {
  (void)fault;
  struct views_reader *reader = guard_calloc(1, sizeof *reader);
  reader->views = views;
  *ret_reader = reader;
  return STATUS_OK;
}

void views_reader_free(struct views_reader *reader) {
  if (reader == NULL) return;
  must(!reader->reading);
  free(reader);
}

enum status views_reader_begin(struct views_reader *reader) {
  must(!reader->reading && !reader->views->writing);
  reader->reading = true;
  reader->views->readers++;
  return STATUS_OK;
}

void views_reader_end(struct views_reader *reader) {
  if (!reader->reading) return;
  reader->reading = false;
  reader->views->readers--;
}

enum status views_reader_get(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_value) {
  must(reader->reading);
  return get(table_of(reader->views, table), key, ret_value);
}

enum status views_reader_from(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_key,
                              struct bytes *ret_value) {
  const struct table *rows = table_of(reader->views, table);
  must(reader->reading);
  return show(rows, place_of(rows, key), ret_key, ret_value);
}

enum status views_reader_below(struct views_reader *reader, unsigned table, struct bytes key, struct bytes *ret_key,
                               struct bytes *ret_value) {
  const struct table *rows = table_of(reader->views, table);
  must(reader->reading);
  uint64_t place = place_of(rows, key);
  return place == 0 ? STATUS_END : show(rows, place - 1, ret_key, ret_value);
}
