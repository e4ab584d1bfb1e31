/* Opening: creation, reopening, every refusal with its line, and that a refusal changes nothing. */
#include <dirent.h>
#include <sodium.h>

#include "journal/fixture.h"

static const char no_words[] = "";

/* A digest over names, modes, owners, sizes and contents below a directory, to show that nothing changed. */
static void tree_digest(const char *path, crypto_generichash_state *state) {
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort);
  assert_true(count >= 0);
  for (int i = 0; i < count; i++) {
    char below[1024];
    struct stat found;
    (void)snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
    bool is_self = strcmp(entries[i]->d_name, ".") == 0 || strcmp(entries[i]->d_name, "..") == 0;
    free(entries[i]);
    if (is_self) continue;
    assert_int_equal(lstat(below, &found), 0);
    uint64_t facts[] = {found.st_mode, found.st_uid, S_ISDIR(found.st_mode) ? 0 : (uint64_t)found.st_size};
    crypto_generichash_update(state, (const uint8_t *)below, strlen(below));
    crypto_generichash_update(state, (const uint8_t *)facts, sizeof facts);
    if (S_ISDIR(found.st_mode)) {
      tree_digest(below, state);
      continue;
    }
    struct bytes bytes = test_file_read(below);
    crypto_generichash_update(state, bytes.data, bytes.size);
    free((void *)(uintptr_t)bytes.data);
  }
  free(entries);
}

static struct id tree(const char *path) {
  crypto_generichash_state state;
  struct id digest;
  crypto_generichash_init(&state, NULL, 0, sizeof digest.bytes);
  tree_digest(path, &state);
  crypto_generichash_final(&state, digest.bytes, sizeof digest.bytes);
  return digest;
}

/* Refused to the server and to a tool, and the directory is the same afterwards. */
static void refused_without_trace(const char *data, enum status expected, const char *word, const char *other) {
  struct id before = tree(data);
  fixture_refused(data, fixture_options(false), expected, word, other);
  struct id after = tree(data);
  assert_true(id_equal(&before, &after));
  fixture_refused(data, fixture_options(true), expected, word, other);
  after = tree(data);
  assert_true(id_equal(&before, &after));
}

static void log_make(const char *data, unsigned events) {
  struct journal *journal = fixture_create(data);
  if (events != 0) fixture_commit(journal, events, 40);
  journal_close(journal, false);
}

static unsigned mode_of(const char *path) {
  struct stat found;
  assert_int_equal(stat(path, &found), 0);
  return found.st_mode & 07777;
}

static void test_creation(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  struct journal *journal = fixture_create(data);
  assert_int_equal(journal_last_seq(journal), 0);
  assert_int_equal(journal_last_time_us(journal), 0);
  assert_false(journal_was_clean(journal));
  assert_true(journal_created_us(journal) > fixture_time_us);
  struct id node = journal_node_id(journal);
  struct secret secret = *journal_secret(journal);
  uint64_t start = journal_last_chain(journal);
  assert_false(id_is_zero(&node));
  assert_int_equal(mode_of(data), 0700);
  assert_int_equal(mode_of(path_of(data, "log").text), 0700);
  assert_int_equal(mode_of(path_of(data, "log/data.mdb").text), 0600);
  assert_int_equal(mode_of(path_of(data, "LOCK").text), 0600);
  assert_int_equal(mode_of(path_of(data, "node.id").text), 0600);
  assert_int_not_equal(access(path_of(data, "log.new").text, F_OK), 0);
  struct bytes text = test_file_read(path_of(data, "node.id").text);
  assert_int_equal(text.size, 33);
  assert_memory_equal(text.data, id_text(&node).text, 32);
  assert_int_equal(text.data[32], '\n');
  free((void *)(uintptr_t)text.data);
  journal_close(journal, false);

  journal = fixture_open(data);
  struct id again = journal_node_id(journal);
  assert_true(id_equal(&node, &again));
  assert_memory_equal(journal_secret(journal), &secret, sizeof secret);
  assert_int_equal(journal_last_chain(journal), start);
  journal_close(journal, false);

  /* Another log has other secrets. */
  journal = fixture_create(path_of(top, "other").text);
  assert_memory_not_equal(journal_secret(journal), &secret, sizeof secret);
  assert_true(journal_last_chain(journal) != start);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* create on a log that is there opens it; leftovers of a creation that was cut short do not disturb. */
static void test_creation_again(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  assert_int_equal(mkdir(data, 0700), 0);
  assert_int_equal(mkdir(path_of(data, "log.new").text, 0700), 0);
  FILE *file = fopen(path_of(data, "log.new/data.mdb").text, "wb");
  assert_non_null(file);
  assert_int_equal(fclose(file), 0);
  log_make(data, 3);
  struct journal *journal = fixture_create(data);
  assert_int_equal(journal_last_seq(journal), 3);
  journal_close(journal, false);
  test_directory_remove(top);
}

/* A genesis can be taken over, so that records keep their chain in a copy. */
static void test_creation_from_genesis(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct journal *journal = fixture_create(path_of(top, "data").text);
  struct journal_options options = fixture_options(true);
  options.genesis = journal_genesis(journal);
  struct journal *copy = fixture_open_with(path_of(top, "copy").text, options);
  struct id node = journal_node_id(journal), copied = journal_node_id(copy);
  assert_true(id_equal(&node, &copied));
  assert_int_equal(journal_last_chain(journal), journal_last_chain(copy));
  fixture_commit(journal, 4, 10);
  fixture_commit(copy, 4, 10);
  assert_int_equal(journal_last_chain(journal), journal_last_chain(copy));
  uint8_t changed[96];
  assert_int_equal(options.genesis.size, sizeof changed);
  memcpy(changed, options.genesis.data, sizeof changed);
  changed[8] ^= 1;
  options.genesis = bytes_of(changed, sizeof changed);
  fixture_refused(path_of(top, "third").text, options, STATUS_FOREIGN, "genesis", "check value");
  journal_close(journal, false);
  journal_close(copy, false);
  test_directory_remove(top);
}

static void test_nothing_there(void **state) {
  (void)state;
  char *top = test_directory_make();
  const struct journal_options tool = {.read_only = true};
  fixture_refused(path_of(top, "none").text, fixture_options(false), STATUS_NOT_FOUND, "/none", "no such directory");
  fixture_refused(path_of(top, "none").text, tool, STATUS_NOT_FOUND, "/none", "no such directory");
  fixture_refused(path_of(top, "none/below").text, fixture_options(true), STATUS_NOT_FOUND, "/none/below", "check the path");
  assert_int_not_equal(access(path_of(top, "none").text, F_OK), 0);
  struct path empty_path = path_of(top, "empty");
  const char *empty = empty_path.text;
  assert_int_equal(mkdir(empty, 0700), 0);
  struct id before = tree(top);
  fixture_refused(empty, fixture_options(false), STATUS_NOT_FOUND, "/empty", "holds no log");
  fixture_refused(empty, tool, STATUS_NOT_FOUND, "/empty", "orbitctl init");
  struct id after = tree(top);
  assert_true(id_equal(&before, &after));
  FILE *file = fopen(path_of(top, "file").text, "wb");
  assert_non_null(file);
  assert_int_equal(fclose(file), 0);
  fixture_refused(path_of(top, "file").text, fixture_options(false), STATUS_NOT_FOUND, "/file", "not a directory");
  test_directory_remove(top);
}

/* The owner is compared: root has no way around it. */
static void test_other_owner(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("not root: cannot give a directory to somebody else, skipped\n");
    skip();
  }
  static const char *const places[] = {"data", "data/log", "data/log/data.mdb"};
  char *top = test_directory_make();
  log_make(path_of(top, "data").text, 2);
  for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
    assert_int_equal(chown(path_of(top, places[i]).text, 12345, (gid_t)-1), 0);
    refused_without_trace(path_of(top, "data").text, STATUS_PERMISSION_DENIED, places[i], "belongs to user 12345");
    fixture_refused(path_of(top, "data").text, (struct journal_options){.read_only = true}, STATUS_PERMISSION_DENIED, places[i],
                    "run it as the owner");
    assert_int_equal(chown(path_of(top, places[i]).text, 0, (gid_t)-1), 0);
  }
  journal_close(fixture_open(path_of(top, "data").text), false);
  test_directory_remove(top);
}

static void test_not_writable(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("not root: cannot become somebody else, skipped\n");
    skip();
  }
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  log_make(data, 2);
  static const char *const places[] = {"", "data", "data/log", "data/log/data.mdb", "data/LOCK", "data/node.id"};
  for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++)
    assert_int_equal(chown(path_of(top, places[i]).text, 12345, (gid_t)-1), 0);
  assert_int_equal(chmod(data, 0500), 0);
  assert_int_equal(seteuid(12345), 0);
  fixture_refused(data, fixture_options(false), STATUS_PERMISSION_DENIED, "/data", "cannot be written");
  assert_int_equal(seteuid(0), 0);
  test_directory_remove(top);
}

/* What becomes of the file when it is cut or overwritten at a place. */
static void test_damaged_file(void **state) {
  (void)state;
  enum what { CUT, ZERO, FLIP };
  static const struct {
    const char *name;
    enum what what;
    int64_t at; /* below 0: from the end of what is in use */
    enum status status;
    const char *word;
  } cases[] = {
      {"empty", CUT, 0, STATUS_CORRUPT, "cut off inside its first pages"},
      {"less than one page", CUT, 100, STATUS_CORRUPT, "cut off inside its first pages"},
      {"one page", CUT, 4096, STATUS_CORRUPT, "cut off inside its first pages"},
      {"two pages", CUT, 8192, STATUS_CORRUPT, "bytes are in use, the file has 8192"},
      {"one page less", CUT, -4096, STATUS_CORRUPT, "is cut off"},
      {"one byte less", CUT, -1, STATUS_CORRUPT, "is cut off"},
      {"first page zeroed", ZERO, 0, STATUS_CORRUPT, "not an Orbit log"},
      {"second page zeroed", ZERO, 4096, STATUS_CORRUPT, "not an Orbit log"},
      {"magic number", FLIP, 16, STATUS_CORRUPT, "not an Orbit log"},
      {"LMDB version", FLIP, 20, STATUS_FOREIGN, "another version of LMDB"},
      {"page size", FLIP, 41, STATUS_FOREIGN, "has pages of"},
      {"last page, more than the file", FLIP, 136 + 5, STATUS_CORRUPT, "is cut off"},
      {"last page, more than a file can have", FLIP, 136 + 6, STATUS_CORRUPT, "first pages are damaged"},
      {"last page of the second", FLIP, 4096 + 136 + 5, STATUS_CORRUPT, "is cut off"},
  };
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  struct journal *journal = fixture_create(data);
  fixture_commit(journal, 200, 400);
  struct journal_stats stats;
  journal_stats(journal, &stats);
  journal_close(journal, false);
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    print_message("  %s\n", cases[i].name);
    char name[32];
    (void)snprintf(name, sizeof name, "copy-%u", i);
    struct path copy_path = path_of(top, name);
    const char *copy = copy_path.text;
    fixture_copy(data, copy);
    int file = open(path_of(copy, "log/data.mdb").text, O_RDWR);
    assert_true(file >= 0);
    off_t at = cases[i].at >= 0 ? cases[i].at : (off_t)stats.used_bytes + cases[i].at;
    uint8_t byte = 0, zeroes[4096] = {0};
    if (cases[i].what == CUT) {
      assert_int_equal(ftruncate(file, at), 0);
    } else if (cases[i].what == ZERO) {
      assert_int_equal(pwrite(file, zeroes, sizeof zeroes, at), sizeof zeroes);
    } else {
      assert_int_equal(pread(file, &byte, 1, at), 1);
      byte ^= 0x20;
      assert_int_equal(pwrite(file, &byte, 1, at), 1);
    }
    assert_int_equal(close(file), 0);
    refused_without_trace(copy, cases[i].status, cases[i].word, "log/data.mdb");
    fixture_refused(copy, (struct journal_options){.read_only = true}, cases[i].status, cases[i].word, no_words);
  }
  test_directory_remove(top);
}

static void format_other(struct raw_log *log) { raw_meta_put(log, "format", bytes_of("\2\0\0\0", 4)); }
static void format_short(struct raw_log *log) { raw_meta_put(log, "format", bytes_of("\1", 1)); }
static void meta_delete(struct raw_log *log, const char *name) {
  MDB_val key = {strlen(name), (void *)(uintptr_t)name};
  assert_int_equal(mdb_del(log->txn, log->meta, &key, NULL), 0);
}
static void format_missing(struct raw_log *log) { meta_delete(log, "format"); }
static void genesis_missing(struct raw_log *log) { meta_delete(log, "genesis"); }
static void genesis_flip(struct raw_log *log, size_t at) {
  MDB_val key = {7, (void *)(uintptr_t) "genesis"}, value;
  uint8_t bytes[96];
  assert_int_equal(mdb_get(log->txn, log->meta, &key, &value), 0);
  assert_int_equal(value.mv_size, sizeof bytes);
  memcpy(bytes, value.mv_data, sizeof bytes);
  bytes[at] ^= 1;
  raw_meta_put(log, "genesis", bytes_of(bytes, sizeof bytes));
}
static void genesis_format(struct raw_log *log) { genesis_flip(log, 0); }
static void genesis_page(struct raw_log *log) { genesis_flip(log, 5); }
static void genesis_created(struct raw_log *log) { genesis_flip(log, 8); }
static void genesis_node(struct raw_log *log) { genesis_flip(log, 16); }
static void genesis_secret(struct raw_log *log) { genesis_flip(log, 40); }
static void genesis_check_value(struct raw_log *log) { genesis_flip(log, 95); }
static void genesis_short(struct raw_log *log) { raw_meta_put(log, "genesis", bytes_of("genesis", 7)); }
static void last_header(struct raw_log *log) {
  struct bytes record = raw_get(log, 5);
  ((uint8_t *)(uintptr_t)record.data)[0] ^= 1; /* length */
  raw_put(log, 5, record);
  free((void *)(uintptr_t)record.data);
}
static void last_missing(struct raw_log *log) { raw_delete(log, 5); }
static void events_gone(struct raw_log *log) { assert_int_equal(mdb_drop(log->txn, log->events, 1), 0); }
static void first_flip(struct raw_log *log) {
  struct bytes record = raw_get(log, 1);
  ((uint8_t *)(uintptr_t)record.data)[80] ^= 1;
  raw_put(log, 1, record);
  free((void *)(uintptr_t)record.data);
}

static void test_foreign_contents(void **state) {
  (void)state;
  static const struct {
    const char *name;
    void (*change)(struct raw_log *log);
    enum status status;
    const char *word;
    bool tool_may; /* offline tools may open it and are told by replay */
  } cases[] = {
      {"format 2", format_other, STATUS_FOREIGN, "has format version 2, this program reads version 1", false},
      {"format of one byte", format_short, STATUS_FOREIGN, "no format version", false},
      {"no format", format_missing, STATUS_FOREIGN, "no format version", false},
      {"no genesis", genesis_missing, STATUS_FOREIGN, "no genesis", false},
      {"genesis: format", genesis_format, STATUS_FOREIGN, "genesis does not fit", false},
      {"genesis: page size", genesis_page, STATUS_FOREIGN, "genesis does not fit", false},
      {"genesis: creation time", genesis_created, STATUS_FOREIGN, "genesis does not fit", false},
      {"genesis: node", genesis_node, STATUS_FOREIGN, "genesis does not fit", false},
      {"genesis: secret", genesis_secret, STATUS_FOREIGN, "genesis does not fit", false},
      {"genesis: check value", genesis_check_value, STATUS_FOREIGN, "genesis does not fit", false},
      {"genesis: other size", genesis_short, STATUS_CORRUPT, "genesis has 7 bytes instead of 96", false},
      {"last record's header", last_header, STATUS_CORRUPT, "seq 5, the last one", true},
      {"last record missing", last_missing, STATUS_CORRUPT, "seq 4, the last one", true},
      {"first record's body", first_flip, STATUS_FOREIGN, "seq 1 does not follow from genesis", true},
      {"no events database", events_gone, STATUS_FOREIGN, "no log of Orbit", false},
  };
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  log_make(data, 5);
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    print_message("  %s\n", cases[i].name);
    char name[32];
    (void)snprintf(name, sizeof name, "copy-%u", i);
    struct path copy_path = path_of(top, name);
    const char *copy = copy_path.text;
    fixture_copy(data, copy);
    struct raw_log log = raw_open(copy);
    cases[i].change(&log);
    raw_close(&log);
    fixture_refused(copy, fixture_options(false), cases[i].status, cases[i].word, "/log"); /* makes LOCK */
    refused_without_trace(copy, cases[i].status, cases[i].word, "/log");
    if (cases[i].tool_may) journal_close(fixture_read(copy), false);
    else fixture_refused(copy, (struct journal_options){.read_only = true}, cases[i].status, cases[i].word, "/log");
  }
  test_directory_remove(top);
}

/* A whole genesis of another log: it fits itself, but neither the node id nor the records. */
static void test_foreign_genesis(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data"), other_path = path_of(top, "other");
  const char *data = data_path.text, *other = other_path.text;
  log_make(data, 3);
  struct journal *journal = fixture_create(other);
  uint8_t genesis[96];
  memcpy(genesis, journal_genesis(journal).data, sizeof genesis);
  journal_close(journal, false);
  struct raw_log log = raw_open(data);
  raw_meta_put(&log, "genesis", bytes_of(genesis, sizeof genesis));
  raw_close(&log);
  refused_without_trace(data, STATUS_FOREIGN, "seq 1 does not follow from genesis", "/data/log");
  /* Tools are told about the node id; without it, replay tells them. */
  fixture_refused(data, (struct journal_options){.read_only = true}, STATUS_FOREIGN, "node.id says", "was made by node");
  assert_int_equal(unlink(path_of(data, "node.id").text), 0);
  journal_close(fixture_read(data), false);
  assert_int_not_equal(access(path_of(data, "node.id").text, F_OK), 0);
  test_directory_remove(top);
}

static void test_not_a_log(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  assert_int_equal(mkdir(data, 0700), 0);
  assert_int_equal(mkdir(path_of(data, "log").text, 0700), 0);
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi dbi;
  assert_int_equal(mdb_env_create(&env), 0);
  assert_int_equal(mdb_env_open(env, path_of(data, "log").text, 0, 0600), 0);
  assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
  assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
  MDB_val key = {4, (void *)(uintptr_t) "meta"}, value = {1, (void *)(uintptr_t) "x"};
  assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
  assert_int_equal(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
  fixture_refused(data, fixture_options(false), STATUS_FOREIGN, "no log of Orbit", "/data/log");
  refused_without_trace(data, STATUS_FOREIGN, "no log of Orbit", "/data/log");
  test_directory_remove(top);
}

static void test_node_id(void **state) {
  (void)state;
  static const struct {
    const char *text;
    enum status status;
    const char *word;
  } cases[] = {
      {"0123456789abcdef0123456789abcdef\n", STATUS_FOREIGN, "node.id says 0123456789abcdef0123456789abcdef"},
      {"0123456789abcdef0123456789abcdef", STATUS_CORRUPT, "not 32 hexadecimal digits"},
      {"0123456789ABCDEF0123456789abcdef\n", STATUS_CORRUPT, "not 32 hexadecimal digits"},
      {"00000000000000000000000000000000\n", STATUS_CORRUPT, "not 32 hexadecimal digits"},
      {"0123456789abcdef0123456789abcdef\n\n", STATUS_CORRUPT, "not 32 hexadecimal digits"},
      {"", STATUS_CORRUPT, "not 32 hexadecimal digits"},
  };
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  log_make(data, 1);
  struct bytes own = test_file_read(path_of(data, "node.id").text);
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    FILE *file = fopen(path_of(data, "node.id").text, "wb");
    assert_non_null(file);
    assert_true(fputs(cases[i].text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    refused_without_trace(data, cases[i].status, cases[i].word, "/data/node.id");
  }
  /* A backup has none: it is written again from genesis. */
  assert_int_equal(unlink(path_of(data, "node.id").text), 0);
  journal_close(fixture_read(data), false);
  assert_int_not_equal(access(path_of(data, "node.id").text, F_OK), 0);
  journal_close(fixture_open(data), false);
  struct bytes again = test_file_read(path_of(data, "node.id").text);
  assert_true(bytes_equal(own, again));
  assert_int_equal(mode_of(path_of(data, "node.id").text), 0600);
  free((void *)(uintptr_t)own.data);
  free((void *)(uintptr_t)again.data);
  test_directory_remove(top);
}

/* A process of its own that tries to open; its exit code says how it went. */
static int opened_elsewhere(const char *data, struct journal_options options, const char *word) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct journal *journal = NULL;
    struct fault fault = {.message = ""};
    enum status status = journal_open(data, &options, &journal, &fault);
    bool worded = status == STATUS_OK || strstr(fault.message, word) != NULL;
    if (!worded) print_message("got %s: %s\n", status_name(status), fault.message);
    uint64_t seq = status == STATUS_OK ? journal_last_seq(journal) : 0;
    if (status == STATUS_OK) journal_close(journal, false);
    _exit(!worded ? 99 : status == STATUS_OK ? 100 + (int)seq : (int)status);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  return WEXITSTATUS(result);
}

static void test_locked(void **state) {
  (void)state;
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  struct journal *journal = fixture_create(data);
  char words[64];
  (void)snprintf(words, sizeof words, "in use by the server with pid %ld", (long)getpid());
  assert_int_equal(opened_elsewhere(data, fixture_options(false), words), STATUS_LOCKED);
  assert_int_equal(opened_elsewhere(data, fixture_options(true), words), STATUS_LOCKED);
  fixture_refused(data, fixture_options(false), STATUS_LOCKED, words, "stop it first");
  fixture_commit(journal, 7, 10);
  /* A tool needs no lock, and sees what is durable. */
  assert_int_equal(opened_elsewhere(data, (struct journal_options){.read_only = true}, no_words), 107);
  fixture_commit(journal, 1, 10);
  journal_close(journal, false);
  struct bytes pid = test_file_read(path_of(data, "LOCK").text);
  assert_int_equal(pid.size, 0);
  free((void *)(uintptr_t)pid.data);
  assert_int_equal(opened_elsewhere(data, fixture_options(false), no_words), 108);
  journal_close(fixture_open(data), false);
  test_directory_remove(top);
}

/* The mark is taken away by the first commit, and by nothing before. */
static bool has_mark(const char *data) {
  struct raw_log log = raw_open(data);
  MDB_val key = {5, (void *)(uintptr_t) "clean"}, value;
  int code = mdb_get(log.txn, log.meta, &key, &value);
  assert_true(code == 0 || code == MDB_NOTFOUND);
  raw_close(&log);
  return code == 0;
}

static void test_clean_mark(void **state) {
  (void)state;
  static const struct {
    bool found;       /* at open */
    unsigned commits; /* then */
    bool close_clean;
  } steps[] = {
      {false, 0, true}, {true, 0, false}, {true, 0, true},  {true, 1, false}, {false, 0, false}, {false, 2, true},
      {true, 0, false}, {true, 1, true},  {true, 2, false}, {false, 1, true}, {true, 0, false},
  };
  char *top = test_directory_make();
  struct path data_path = path_of(top, "data");
  const char *data = data_path.text;
  journal_close(fixture_create(data), false);
  for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    struct journal *tool = fixture_read(data);
    assert_int_equal(journal_was_clean(tool), steps[i].found);
    journal_close(tool, true); /* changes nothing */
    struct journal *journal = fixture_open(data);
    assert_int_equal(journal_was_clean(journal), steps[i].found);
    for (unsigned n = 0; n < steps[i].commits; n++) fixture_commit(journal, 1, 5);
    assert_int_equal(journal_was_clean(journal), steps[i].found);
    journal_close(journal, steps[i].close_clean);
    /* The first commit takes it away, so that no mark of an older end is left in the file. */
    assert_int_equal(has_mark(data), steps[i].close_clean || (steps[i].found && steps[i].commits == 0));
  }
  /* A mark that speaks of another end of the log is none. */
  struct raw_log log = raw_open(data);
  raw_meta_put(&log, "clean", bytes_of("\1\0\0\0\0\0\0\0", 8));
  raw_close(&log);
  struct journal *journal = fixture_open(data);
  assert_false(journal_was_clean(journal));
  fixture_commit(journal, 1, 5);
  journal_close(journal, true);
  journal = fixture_open(data);
  assert_true(journal_was_clean(journal));
  journal_close(journal, false);
  journal_close(NULL, true);
  test_directory_remove(top);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_creation),
      cmocka_unit_test(test_creation_again),
      cmocka_unit_test(test_creation_from_genesis),
      cmocka_unit_test(test_nothing_there),
      cmocka_unit_test(test_other_owner),
      cmocka_unit_test(test_not_writable),
      cmocka_unit_test(test_damaged_file),
      cmocka_unit_test(test_foreign_contents),
      cmocka_unit_test(test_foreign_genesis),
      cmocka_unit_test(test_not_a_log),
      cmocka_unit_test(test_node_id),
      cmocka_unit_test(test_locked),
      cmocka_unit_test(test_clean_mark),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
