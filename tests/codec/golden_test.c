/* Golden records: one of each type of event, as the first version of Orbit that had the type wrote it. Whatever changes later,
 * these bytes must decode, print as they did, and encode to the same bytes: a log of that version is read in full.
 * ORBIT_GOLDEN_WRITE=1 writes the files that are missing (for a new type of event) and never touches one that is there. */
#include <dirent.h>
#include <unistd.h>

#include "base/guard.h"
#include "codec/event_samples.h"

#define GOLDEN_DIRECTORY ORBIT_SOURCE_DIR "/tests/data/golden/v1/"

/* The chain before each golden record. */
static const uint64_t golden_previous_chain = UINT64_C(0x0123456789ABCDEF);

static struct sample_pool pool;
static struct event_decoder *decoder;

static void golden_path(const struct event_schema *schema, const char *ending, char out[512]) {
  (void)snprintf(out, 512, "%s%s%s", GOLDEN_DIRECTORY, schema->text, ending);
}

static void print_line(const struct event *event, struct buffer *out) {
  buffer_reset(out);
  buffer_append_char(out, '{');
  event_print_json(event, true, true, out);
  buffer_append_text(out, "}\n");
  assert_false(out->failed);
}

static void encode_sealed(const struct event *event, struct buffer *out) {
  sample_encode(event, out);
  (void)record_seal(out->data, out->size, event->last_of_commit, event->offset, golden_previous_chain);
}

static void write_if_missing(const char *path, struct bytes content) {
  if (access(path, F_OK) == 0) return;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
  assert_int_equal(fclose(file), 0);
  print_message("wrote %s\n", path);
}

static void write_golden(const struct event_schema *schema) {
  char path[512];
  struct buffer out;
  pool.used = 0;
  struct event event = sample_fixed_event(&pool, schema);
  buffer_init(&out, 1 << 16);
  encode_sealed(&event, &out);
  golden_path(schema, ".bin", path);
  write_if_missing(path, buffer_bytes(&out));
  print_line(&event, &out);
  golden_path(schema, ".json", path);
  write_if_missing(path, buffer_bytes(&out));
  buffer_clear(&out);
}

static void check_golden(const struct event_schema *schema) {
  char path[512];
  struct buffer out;
  struct fault fault = {.message = ""};
  struct event event;
  golden_path(schema, ".bin", path);
  struct bytes record = test_file_read(path);
  if (record.data == NULL) fail_msg("%s is missing; ORBIT_GOLDEN_WRITE=1 writes it", path);
  if (event_decode(decoder, record, &event, &fault) != STATUS_OK) fail_msg("%s: %s", path, fault.message);
  assert_int_equal(event.type, schema->type);
  assert_int_equal(event.chain, record_chain(record, golden_previous_chain));
  buffer_init(&out, 1 << 16);
  encode_sealed(&event, &out);
  assert_int_equal(out.size, record.size);
  assert_memory_equal(out.data, record.data, record.size);
  print_line(&event, &out);
  golden_path(schema, ".json", path);
  struct bytes json = test_file_read(path);
  if (json.data == NULL) fail_msg("%s is missing; ORBIT_GOLDEN_WRITE=1 writes it", path);
  assert_int_equal(json.size, out.size);
  assert_memory_equal(json.data, out.data, out.size);
  free((void *)(uintptr_t)json.data);
  free((void *)(uintptr_t)record.data);
  buffer_clear(&out);
}

static void golden_records_stay_as_they_were(void **state) {
  (void)state;
  sample_each_schema(check_golden);
}

/* A file whose type has gone would be a record that no reader knows any more. */
static void every_golden_file_has_its_type(void **state) {
  (void)state;
  unsigned files = 0;
  DIR *directory = opendir(GOLDEN_DIRECTORY);
  assert_non_null(directory);
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    const char *ending = strrchr(entry->d_name, '.');
    if (entry->d_name[0] == '.' || ending == NULL) continue;
    enum event_type type;
    if (!event_type_parse(bytes_of(entry->d_name, (size_t)(ending - entry->d_name)), &type))
      fail_msg("%s: no event has this name", entry->d_name);
    assert_true(strcmp(ending, ".bin") == 0 || strcmp(ending, ".json") == 0);
    files++;
  }
  (void)closedir(directory);
  assert_true(files > 0 && files % 2 == 0);
}

/* The bytes of the dump in a document, after each line's place and a blank. */
static size_t read_dump(const char *at, uint8_t *out, size_t size) {
  size_t count = 0;
  while (*at != '`') {
    const char *line_end = strchr(at, '\n');
    assert_non_null(line_end);
    for (at += 9; at < line_end; at += 3) {
      assert_true(count < size);
      out[count++] = (uint8_t)strtoul(at, NULL, 16);
    }
    at = line_end + 1;
  }
  return count;
}

/* The worked example of schema/log.md is the golden record that it names. */
static void documented_record_is_the_golden_one(void **state) {
  (void)state;
  static const char opening[] = "\n```hexdump\n";
  uint8_t dump[1024];
  struct bytes page = test_file_read(ORBIT_SOURCE_DIR "/schema/log.md");
  struct bytes golden = test_file_read(GOLDEN_DIRECTORY "queue.paused.bin");
  assert_non_null(page.data);
  assert_non_null(golden.data);
  cleanup(guard_free) char *text = guard_calloc(1, page.size + 1);
  memcpy(text, page.data, page.size);
  const char *start = strstr(text, opening);
  assert_non_null(start);
  assert_int_equal(read_dump(start + strlen(opening), dump, sizeof dump), golden.size);
  assert_memory_equal(dump, golden.data, golden.size);
  free((void *)(uintptr_t)page.data);
  free((void *)(uintptr_t)golden.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_records_stay_as_they_were),
      cmocka_unit_test(every_golden_file_has_its_type),
      cmocka_unit_test(documented_record_is_the_golden_one),
  };
  const char *write = getenv("ORBIT_GOLDEN_WRITE");
  if (write != NULL && strcmp(write, "1") == 0) sample_each_schema(write_golden);
  decoder = event_decoder_new();
  int failures = cmocka_run_group_tests(tests, NULL, NULL);
  event_decoder_free(decoder);
  return failures;
}
