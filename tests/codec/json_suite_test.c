/* Tests every file of nst/JSONTestSuite: y_ is accepted, n_ refused; what the suite leaves open (i_), and where Orbit is
 * stricter than RFC 8259 asks, stands in the tables below. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "support/support.h"

struct verdict {
  const char *file;
  bool accepted;
  const char *because;
};

/* Valid JSON that Orbit refuses. */
static const struct verdict exceptions[] = {
    {"y_object_duplicated_key.json", false, "duplicate key"},
    {"y_object_duplicated_key_and_value.json", false, "duplicate key"},
    {"y_object_escaped_null_in_key.json", false, "U+0000"},
    {"y_string_null_escape.json", false, "U+0000"},
};

static const struct verdict open_questions[] = {
    {"i_number_double_huge_neg_exp.json", true, "numbers are kept as written"},
    {"i_number_huge_exp.json", true, "numbers are kept as written"},
    {"i_number_neg_int_huge_exp.json", true, "numbers are kept as written"},
    {"i_number_pos_double_huge_exp.json", true, "numbers are kept as written"},
    {"i_number_real_neg_overflow.json", true, "numbers are kept as written"},
    {"i_number_real_pos_overflow.json", true, "numbers are kept as written"},
    {"i_number_real_underflow.json", true, "numbers are kept as written"},
    {"i_number_too_big_neg_int.json", true, "numbers are kept as written"},
    {"i_number_too_big_pos_int.json", true, "numbers are kept as written"},
    {"i_number_very_big_negative_int.json", true, "numbers are kept as written"},
    {"i_object_key_lone_2nd_surrogate.json", false, "lone surrogate"},
    {"i_string_1st_surrogate_but_2nd_missing.json", false, "lone surrogate"},
    {"i_string_1st_valid_surrogate_2nd_invalid.json", false, "lone surrogate"},
    {"i_string_UTF-16LE_with_BOM.json", false, "not UTF-8"},
    {"i_string_UTF-8_invalid_sequence.json", false, "invalid UTF-8"},
    {"i_string_UTF8_surrogate_U+D800.json", false, "invalid UTF-8"},
    {"i_string_incomplete_surrogate_and_escape_valid.json", false, "lone surrogate"},
    {"i_string_incomplete_surrogate_pair.json", false, "lone surrogate"},
    {"i_string_incomplete_surrogates_escape_valid.json", false, "lone surrogate"},
    {"i_string_invalid_lonely_surrogate.json", false, "lone surrogate"},
    {"i_string_invalid_surrogate.json", false, "lone surrogate"},
    {"i_string_invalid_utf-8.json", false, "invalid UTF-8"},
    {"i_string_inverted_surrogates_U+1D11E.json", false, "lone surrogate"},
    {"i_string_iso_latin_1.json", false, "invalid UTF-8"},
    {"i_string_lone_second_surrogate.json", false, "lone surrogate"},
    {"i_string_lone_utf8_continuation_byte.json", false, "invalid UTF-8"},
    {"i_string_not_in_unicode_range.json", false, "invalid UTF-8"},
    {"i_string_overlong_sequence_2_bytes.json", false, "invalid UTF-8"},
    {"i_string_overlong_sequence_6_bytes.json", false, "invalid UTF-8"},
    {"i_string_overlong_sequence_6_bytes_null.json", false, "invalid UTF-8"},
    {"i_string_truncated-utf-8.json", false, "invalid UTF-8"},
    {"i_string_utf16BE_no_BOM.json", false, "not UTF-8"},
    {"i_string_utf16LE_no_BOM.json", false, "not UTF-8"},
    {"i_structure_500_nested_arrays.json", false, "deeper than 64"},
    {"i_structure_UTF-8_BOM_empty_object.json", false, "byte order mark"},
};

enum {
  exception_count = sizeof exceptions / sizeof exceptions[0],
  open_count = sizeof open_questions / sizeof open_questions[0]
};

static const struct verdict *find(const struct verdict *verdicts, size_t count, const char *file) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(verdicts[i].file, file) == 0) return &verdicts[i];
  return NULL;
}

/* What the tables and the file's name say; counts the tables' rows as they are met. */
static bool expected(const char *file, unsigned *met) {
  const struct verdict *verdict = find(exceptions, exception_count, file);
  if (verdict == NULL) verdict = find(open_questions, open_count, file);
  if (verdict != NULL) {
    (*met)++;
    return verdict->accepted;
  }
  if (file[0] != 'y' && file[0] != 'n') fail_msg("%s: the tables do not say what Orbit does", file);
  return file[0] == 'y';
}

static void every_file_has_its_verdict(void **state) {
  char path[1024];
  struct json json;
  unsigned files = 0, met = 0;
  (void)state;
  if (test_shared_data() == NULL) {
    print_message("JSONTestSuite is not here: skipped\n");
    skip();
  }
  (void)snprintf(path, sizeof path, "%s/json-test-suite/test_parsing", test_shared_data());
  DIR *directory = opendir(path);
  assert_non_null(directory);
  json_init(&json);
  for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    struct fault fault = {.message = ""};
    (void)snprintf(path, sizeof path, "%s/json-test-suite/test_parsing/%s", test_shared_data(), entry->d_name);
    struct bytes text = test_file_read(path);
    assert_non_null(text.data);
    bool accepted = json_parse(&json, text, &fault) == STATUS_OK;
    if (accepted != expected(entry->d_name, &met))
      fail_msg("%s was %s %s", entry->d_name, accepted ? "accepted" : "refused:", fault.message);
    free((void *)text.data);
    files++;
  }
  json_clear(&json);
  (void)closedir(directory);
  print_message("%u files\n", files);
  assert_true(files >= 300);
  assert_int_equal(met, exception_count + open_count); /* no row is stale */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_file_has_its_verdict)};
  return cmocka_run_group_tests_name("json suite", tests, NULL, NULL);
}
