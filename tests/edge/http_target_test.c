/* Request targets: what is a path, what a parameter, and what is refused. */
#include <string.h>

#include "base/guard.h"
#include "edge/http_target.h"
#include "support/support.h"

static enum status parse(const char *text, char *copy, struct target *target, struct fault *fault) {
  strncpy(copy, text, 511);
  return target_parse(copy, strlen(text), target, fault);
}

/* Segments and parameters joined: "a|b?name=value&…". */
static void show(const struct target *target, struct buffer *out) {
  for (unsigned i = 0; i < target->segment_count && i < target_segments_max; i++) {
    if (i > 0) buffer_append_char(out, '|');
    buffer_append_bytes(out, target->segments[i]);
  }
  for (unsigned i = 0; i < target->parameter_count; i++) {
    buffer_append_char(out, i == 0 ? '?' : '&');
    buffer_append_bytes(out, target->parameters[i].name);
    buffer_append_char(out, '=');
    buffer_append_bytes(out, target->parameters[i].value);
  }
}

static void test_accepted(void **state) {
  static const struct {
    const char *text, *shown;
  } cases[] = {
      {"/", ""},
      {"/v1/tasks", "v1|tasks"},
      {"/v1/tasks/", "v1|tasks|"},
      {"/v1//tasks", "v1||tasks"},
      {"/v1/t%61sks", "v1|tasks"},
      {"/v1/tasks/a%2Fb", "v1|tasks|a/b"}, /* one segment: %2F makes no second one */
      {"/v1/tasks/%2e%2E", "v1|tasks|.."},
      {"/v1/../tasks", "v1|..|tasks"}, /* nothing is folded away */
      {"/a:b", "a:b"},
      {"/a+b?c+d=e+f", "a+b?c d=e f"},
      {"/a?", "a"},
      {"/a?b", "a?b="},
      {"/a?b=", "a?b="},
      {"/a?b=c=d", "a?b=c=d"},
      {"/a?b=1&c=2", "a?b=1&c=2"},
      {"/a?b=/?", "a?b=/?"},
      {"/a?b=%26%3d%25", "a?b=&=%"},
      {"/a?%62=%C3%A9", "a?b=\xC3\xA9"},
      {"http://host/v1/info?a=b", "v1|info?a=b"},
      {"HTTPS://host:1/v1", "v1"},
      {"/http://x", "http:||x"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char copy[512];
    struct target target;
    struct fault fault = {.status = STATUS_OK};
    cleanup(buffer_clear) struct buffer out;
    buffer_init(&out, 1024);
    assert_int_equal(parse(cases[i].text, copy, &target, &fault), STATUS_OK);
    show(&target, &out);
    buffer_append_char(&out, '\0');
    assert_string_equal((const char *)out.data, cases[i].shown);
  }
}

static void test_refused(void **state) {
  static const struct {
    const char *text, *field;
  } cases[] = {
      {"", ""},
      {"*", ""},
      {"v1", ""},
      {"host:443", ""},
      {"http://host", ""},
      {"/%00", ""},
      {"/v1/info%00", ""},
      {"/%", ""},
      {"/%2", ""},
      {"/%zz", ""},
      {"/%-1", ""},
      {"/%+1", ""},
      {"/%C3", ""},       /* not UTF-8 */
      {"/%C0%AF", ""},    /* overlong slash */
      {"/%ED%A0%80", ""}, /* surrogate */
      {"/a b", ""},
      {"/a#b", ""},
      {"/\xC3\xA9", ""},
      {"/a\\b", ""},
      {"/a?b=1&b=2", "b"},
      {"/a?b&%62", "b"},
      {"/a?&b=1", ""},
      {"/a?b=1&", ""},
      {"/a?=1", ""},
      {"/a?b=%", "b"},
      {"/a?b=%00", "b"},
      {"/a?b=%FF", "b"},
      {"/a?%00=1", ""},
      {"/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q&r&s&t&u&v&w&x&y", ""},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char copy[512];
    struct target target = {.segment_count = 77};
    struct fault fault = {.status = STATUS_OK};
    assert_int_equal(parse(cases[i].text, copy, &target, &fault), STATUS_INVALID_ARGUMENT);
    assert_string_equal(fault.field, cases[i].field);
    assert_int_equal(target.segment_count, 77);
  }
}

static void test_depth(void **state) {
  char copy[512];
  struct target target;
  struct fault fault;
  (void)state;
  assert_int_equal(parse("/1/2/3/4/5/6/7/8", copy, &target, &fault), STATUS_OK);
  assert_int_equal(target.segment_count, target_segments_max);
  assert_int_equal(parse("/1/2/3/4/5/6/7/8/9", copy, &target, &fault), STATUS_OK);
  assert_int_equal(target.segment_count, target_segments_max + 1);
}

static void test_parameters(void **state) {
  static const char *const known[] = {"limit", "cursor", NULL};
  char copy[512];
  struct target target;
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  assert_int_equal(parse("/a?limit=7&cursor=x", copy, &target, &fault), STATUS_OK);
  assert_int_equal(target_judge_parameters(&target, known, &fault), STATUS_OK);
  assert_true(bytes_equal_text(target_parameter(&target, "cursor"), "x"));
  assert_null(target_parameter(&target, "Limit").data);
  assert_int_equal(target_judge_parameters(&target, NULL, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "limit");
  assert_int_equal(parse("/a?Limit=7", copy, &target, &fault), STATUS_OK);
  assert_int_equal(target_judge_parameters(&target, known, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "Limit");
}

static void test_numbers(void **state) {
  static const struct {
    const char *text;
    enum status status;
    uint64_t value;
  } cases[] = {
      {"/", STATUS_OK, 20},
      {"/?limit=1", STATUS_OK, 1},
      {"/?limit=100", STATUS_OK, 100},
      {"/?limit=%31", STATUS_OK, 1},
      {"/?limit=0", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=101", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=01", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=-1", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=%2B1", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=1.0", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=1e1", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=+1", STATUS_INVALID_ARGUMENT, 0},
      {"/?limit=18446744073709551617", STATUS_INVALID_ARGUMENT, 0}, /* 1 when it wraps */
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char copy[512];
    struct target target;
    struct fault fault = {.status = STATUS_OK};
    uint64_t value = 0;
    assert_int_equal(parse(cases[i].text, copy, &target, &fault), STATUS_OK);
    assert_int_equal(target_number(&target, "limit", 1, 100, 20, &value, &fault), cases[i].status);
    assert_int_equal(value, cases[i].value);
    if (cases[i].status != STATUS_OK) assert_string_equal(fault.field, "limit");
  }
}

/* What may stand in a target without being percent-encoded: visible ASCII but for the bytes that RFC 3986 gives no place. A
 * fragment, which clients keep to themselves, begins with one of them. */
static void test_bytes(void **state) {
  (void)state;
  for (unsigned c = 1; c < 256; c++) {
    char text[] = "/a?b=?c", copy[512];
    struct target target;
    struct fault fault = {.status = STATUS_OK};
    bool refused = c <= ' ' || c > '~' || strchr("\"#<>\\^`{|}", (int)c) != NULL;
    text[5] = (char)c;
    enum status status = parse(text, copy, &target, &fault);
    if (c == '%') continue; /* the escapes have their own cases */
    if ((status != STATUS_OK) != refused) fail_msg("byte %u", c);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accepted),   cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
      cmocka_unit_test(test_parameters), cmocka_unit_test(test_numbers), cmocka_unit_test(test_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
