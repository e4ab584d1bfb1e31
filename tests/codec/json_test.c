/* Tests what json_parse takes and refuses, where it says the fault is, and what the tokens say. */
#include "codec/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#define TEXT(literal) \
  { (const uint8_t *)(literal), sizeof(literal) - 1 }

static struct json json;

static int set_up(void **state) {
  (void)state;
  json_init(&json);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  json_clear(&json);
  return 0;
}

static enum status parse(const char *text, struct fault *fault) { return json_parse(&json, bytes_text(text), fault); }

/* Parses what must be right. */
static void parsed(const char *text) {
  struct fault fault = {.message = ""};
  if (parse(text, &fault) != STATUS_OK) fail_msg("%.80s: %s (%s)", text, fault.message, fault.field);
}

static void accepts_what_rfc_8259_allows(void **state) {
  static const char *const texts[] = {
      "null",
      "true",
      "false",
      "0",
      "-0",
      "12",
      "-12",
      "0.5",
      "1.10",
      "1e400",
      "1E+2",
      "1e-2",
      "-0.0e-0",
      "123456789012345678901234567890",
      "\"\"",
      "\"a\"",
      "\" \"",
      "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
      "\"\\u0001\"",
      "\"\\uD834\\uDD1E\"",
      "\"\\ud834\\udd1e\"",
      "\"\x7F\"",
      "\"\xC2\x80\"",
      "\"\xDF\xBF\"",
      "\"\xE0\xA0\x80\"",
      "\"\xED\x9F\xBF\"",
      "\"\xEE\x80\x80\"",
      "\"\xEF\xBF\xBF\"",
      "\"\xF0\x90\x80\x80\"",
      "\"\xF4\x8F\xBF\xBF\"",
      "\"已核实\"",
      "[]",
      "[ ]",
      "{}",
      "{ }",
      "[1]",
      "[1,2]",
      "{\"\":0}",
      "{\"a\":1,\"b\":2}",
      "{\"a\":{\"a\":{\"a\":[]}}}",
      "[{\"a\":1},{\"a\":1}]",
      " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : null } \n",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) parsed(texts[i]);
}

static const struct {
  struct bytes text;
  const char *field;
  unsigned byte;
  const char *message;
} refusals[] = {
    /* ends early */
    {TEXT(""), "", 0, "ends where a value"},
    {TEXT("  "), "", 2, "ends where a value"},
    {TEXT("{"), "", 1, "a key in quotes"},
    {TEXT("["), "/0", 1, "ends where a value"},
    {TEXT("[1"), "", 2, "ends inside an array"},
    {TEXT("[1,"), "/1", 3, "ends where a value"},
    {TEXT("{\"a\""), "", 4, "a colon"},
    {TEXT("{\"a\":"), "/a", 5, "ends where a value"},
    {TEXT("{\"a\":1"), "", 6, "ends inside an object"},
    {TEXT("{\"a\":1,"), "", 7, "a key in quotes"},
    {TEXT("\"abc"), "", 4, "ends inside a string"},
    {TEXT("\"abc\\"), "", 4, "ends inside a string"},
    {TEXT("[\"abcdefghijklmnop"), "/0", 18, "ends inside a string"},
    /* punctuation */
    {TEXT("[1,]"), "/1", 3, "a value must stand here"},
    {TEXT("[,1]"), "/0", 1, "a value must stand here"},
    {TEXT("[1 2]"), "", 3, "a comma or ]"},
    {TEXT("[1}"), "", 2, "a comma or ]"},
    {TEXT("{\"a\":1]"), "", 6, "a comma or }"},
    {TEXT("{\"a\":1,}"), "", 7, "a key in quotes"},
    {TEXT("{,}"), "", 1, "a key in quotes"},
    {TEXT("{a:1}"), "", 1, "a key in quotes"},
    {TEXT("{1:1}"), "", 1, "a key in quotes"},
    {TEXT("{\"a\" 1}"), "", 5, "a colon"},
    {TEXT("{\"a\"::1}"), "/a", 5, "a value must stand here"},
    {TEXT("{\"o\":{\"p\":[0,{\"q\" 1}]}}"), "/o/p/1", 18, "a colon"},
    {TEXT("{\"o\":{\"p\":[0,{\"q\":x}]}}"), "/o/p/1/q", 18, "a value must stand here"},
    {TEXT("]"), "", 0, "a value must stand here"},
    /* something after the value */
    {TEXT("1 2"), "", 2, "nothing may follow"},
    {TEXT("{}{}"), "", 2, "nothing may follow"},
    {TEXT("[]]"), "", 2, "nothing may follow"},
    {TEXT("{} \0"), "", 3, "nothing may follow"},
    {TEXT("null//"), "", 4, "nothing may follow"},
    /* words and numbers */
    {TEXT("[nul]"), "/0", 4, "a word"},
    {TEXT("True"), "", 0, "a value must stand here"},
    {TEXT("truE"), "", 3, "a word"},
    {TEXT("nullx"), "", 4, "nothing may follow"},
    {TEXT("NaN"), "", 0, "a value must stand here"},
    {TEXT("-Infinity"), "", 1, "a digit must follow"},
    {TEXT("01"), "", 1, "leading zero"},
    {TEXT("-01"), "", 2, "leading zero"},
    {TEXT("-"), "", 1, "a digit must follow"},
    {TEXT("+1"), "", 0, "a value must stand here"},
    {TEXT(".5"), "", 0, "a value must stand here"},
    {TEXT("[1.]"), "/0", 3, "a digit must follow the point"},
    {TEXT("1.e5"), "", 2, "a digit must follow the point"},
    {TEXT("1e"), "", 2, "a digit must follow the exponent"},
    {TEXT("1e+"), "", 3, "a digit must follow the exponent"},
    {TEXT("0x10"), "", 1, "nothing may follow"},
    {TEXT("1_000"), "", 1, "nothing may follow"},
    {TEXT("\xEF\xBC\x91"), "", 0, "a value must stand here"}, /* full-width 1 */
    /* strings */
    {TEXT("'a'"), "", 0, "a value must stand here"},
    {TEXT("\"\x1F\""), "", 1, "control character"},
    {TEXT("\"\n\""), "", 1, "control character"},
    {TEXT("\"a\0b\""), "", 2, "control character"},
    {TEXT("\"0123456789\x01\""), "", 11, "control character"},
    {TEXT("\"\\x\""), "", 1, "an escape"},
    {TEXT("\"\\U0041\""), "", 1, "an escape"},
    {TEXT("\"\\u\""), "", 1, "four hexadecimal"},
    {TEXT("\"\\u004\""), "", 1, "four hexadecimal"},
    {TEXT("\"\\u00g1\""), "", 1, "four hexadecimal"},
    {TEXT("\"\\u 041\""), "", 1, "four hexadecimal"},
    {TEXT("\"\\u0000\""), "", 1, "U+0000"},
    {TEXT("{\"a\":[\"x\\u0000\"]}"), "/a/0", 8, "U+0000"},
    {TEXT("{\"a\":{\"b\\u0000\":1}}"), "/a", 8, "U+0000"}, /* in a key: the object is to blame */
    /* surrogates */
    {TEXT("\"\\uD834\""), "", 1, "high surrogate"},
    {TEXT("\"\\uD834x\""), "", 1, "high surrogate"},
    {TEXT("\"\\uD834\\n\""), "", 1, "high surrogate"},
    {TEXT("\"\\uD834\\u0041\""), "", 1, "high surrogate"},
    {TEXT("\"\\uD834\\uD834\""), "", 1, "high surrogate"},
    {TEXT("\"\\uDBFF\\uE000\""), "", 1, "high surrogate"},
    {TEXT("\"\\uDD1E\""), "", 1, "low surrogate"},
    {TEXT("\"\\uDD1E\\uD834\""), "", 1, "low surrogate"},
    /* UTF-8 */
    {TEXT("\"\x80\""), "", 1, "UTF-8"},
    {TEXT("\"\xC0\xAF\""), "", 1, "UTF-8"}, /* overlong / */
    {TEXT("\"\xC1\xBF\""), "", 1, "UTF-8"},
    {TEXT("\"\xC2\""), "", 1, "UTF-8"},
    {TEXT("\"\xE0\x9F\xBF\""), "", 1, "UTF-8"},     /* overlong */
    {TEXT("\"\xED\xA0\x80\""), "", 1, "UTF-8"},     /* U+D800 */
    {TEXT("\"\xED\xBF\xBF\""), "", 1, "UTF-8"},     /* U+DFFF */
    {TEXT("\"\xF0\x8F\xBF\xBF\""), "", 1, "UTF-8"}, /* overlong */
    {TEXT("\"\xF4\x90\x80\x80\""), "", 1, "UTF-8"}, /* over U+10FFFF */
    {TEXT("\"\xF5\x80\x80\x80\""), "", 1, "UTF-8"},
    {TEXT("\"\xFF\""), "", 1, "UTF-8"},
    {TEXT("\"abc\xE5\xB7\""), "", 4, "UTF-8"}, /* a sequence cut by the quote */
    {TEXT("\"\xE5\xB7"), "", 1, "UTF-8"},      /* and by the end */
    {TEXT("{\"\xFF\":1}"), "", 2, "UTF-8"},
    {TEXT("\xEF\xBB\xBF{}"), "", 0, "byte order mark"},
    {TEXT("{}\xEF\xBB\xBF"), "", 2, "nothing may follow"},
    {TEXT("[\xC2\xA0]"), "/0", 1, "a value must stand here"}, /* no-break space is no white space here */
    {TEXT("[\f1]"), "/0", 1, "a value must stand here"},
    /* duplicate keys */
    {TEXT("{\"a\":1,\"a\":1}"), "/a", 8, "twice"},
    {TEXT("{\"\":1,\"\":1}"), "/", 7, "twice"},
    {TEXT("{\"a\":1,\"\\u0061\":2}"), "/a", 8, "twice"},
    {TEXT("{\"a/~b\":1,\"a\\/\\u007eb\":2}"), "/a~1~0b", 11, "twice"},
    {TEXT("{\"\xF0\x9D\x84\x9E\":1,\"\\uD834\\uDD1E\":2}"), "/\xF0\x9D\x84\x9E", 11, "twice"},
    {TEXT("[0,{\"p\":{\"q\":[{\"b\":1,\"c\":{},\"b\":[]}]}}]"), "/1/p/q/0/b", 29, "twice"},
};

static void refuses_and_names_the_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    struct fault fault = {.status = STATUS_OK};
    char at[32];
    (void)snprintf(at, sizeof at, "at byte %u", refusals[i].byte);
    enum status status = json_parse(&json, refusals[i].text, &fault);
    if (status != STATUS_INVALID_ARGUMENT || fault.status != status || strcmp(fault.field, refusals[i].field) != 0 ||
        strstr(fault.message, refusals[i].message) == NULL ||
        strcmp(fault.message + strlen(fault.message) - strlen(at), at) != 0)
      fail_msg("%.*s: status %d, \"%s\" at \"%s\"; expected \"%s\" at \"%s\", %s", (int)refusals[i].text.size,
               refusals[i].text.data, (int)status, fault.message, fault.field, refusals[i].message, refusals[i].field, at);
    assert_int_equal(json_parse(&json, refusals[i].text, NULL), STATUS_INVALID_ARGUMENT); /* nobody need listen */
  }
}

static void refuses_any_proper_prefix(void **state) {
  static const char text[] = "{\"a\":[1.5e+3,true,null,\"\\uD834\\uDD1E\xE5\xB7\xB2\"],\"b\":{\"c\":-0}}";
  (void)state;
  parsed(text);
  for (size_t size = 0; size < sizeof text - 1; size++) {
    uint8_t *exact = malloc(size + (size == 0)); /* so that AddressSanitizer sees a read behind the end */
    memcpy(exact, text, size);
    assert_int_equal(json_parse(&json, bytes_of(exact, size), NULL), STATUS_INVALID_ARGUMENT);
    free(exact);
  }
}

static void tokens_tell_where_and_how_many(void **state) {
  (void)state;
  parsed(" {\"a\" :[1.10,{\"\\n\":[]}],\"b\":\"\",\"c\":false}");
  static const struct {
    uint32_t next, count;
    uint8_t type;
    bool escaped;
    const char *raw;
  } tokens[] = {
      {11, 3, JSON_OBJECT, false, "{\"a\" :[1.10,{\"\\n\":[]}],\"b\":\"\",\"c\":false}"},
      {2, 1, JSON_STRING, false, "\"a\""},
      {7, 2, JSON_ARRAY, false, "[1.10,{\"\\n\":[]}]"},
      {4, 0, JSON_NUMBER, false, "1.10"},
      {7, 1, JSON_OBJECT, false, "{\"\\n\":[]}"},
      {6, 1, JSON_STRING, true, "\"\\n\""},
      {7, 0, JSON_ARRAY, false, "[]"},
      {8, 1, JSON_STRING, false, "\"b\""},
      {9, 0, JSON_STRING, false, "\"\""},
      {10, 1, JSON_STRING, false, "\"c\""},
      {11, 0, JSON_FALSE, false, "false"},
  };
  assert_int_equal(json.count, sizeof tokens / sizeof tokens[0]);
  for (uint32_t i = 0; i < json.count; i++) {
    assert_int_equal(json.tokens[i].next, tokens[i].next);
    assert_int_equal(json.tokens[i].count, tokens[i].count);
    assert_int_equal(json.tokens[i].type, tokens[i].type);
    assert_int_equal(json.tokens[i].escaped, tokens[i].escaped);
    assert_true(bytes_equal_text(json_raw(&json, i), tokens[i].raw));
  }
}

static void strings_are_decoded(void **state) {
  static const struct {
    const char *text, *decoded;
  } cases[] = {
      {"\"\"", ""},
      {"\"plain\"", "plain"},
      {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
      {"\"a\\u0041z\"", "aAz"},
      {"\"\\u0001\\u007f\"", "\x01\x7F"},
      {"\"\\u0080\\u07ff\"", "\xC2\x80\xDF\xBF"},
      {"\"\\u0800\\uFFFF\"", "\xE0\xA0\x80\xEF\xBF\xBF"},
      {"\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
      {"\"已\\n核\\u5b9e\"", "已\n核实"},
      {"\"a long run of text before \\t and after it, too\"", "a long run of text before \t and after it, too"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    parsed(cases[i].text);
    struct bytes decoded = json_string(&json, 0);
    assert_non_null(decoded.data);
    if (!bytes_equal_text(decoded, cases[i].decoded))
      fail_msg("%s was decoded to %.*s", cases[i].text, (int)decoded.size, decoded.data);
  }
}

static void decoded_strings_stay_where_they_are(void **state) {
  struct bytes strings[3];
  (void)state;
  parsed("[\"\\u0041\",\"b\\n\",\"\\t\\t\\t\"]");
  for (uint32_t i = 0; i < 3; i++) strings[i] = json_string(&json, i + 1);
  for (uint32_t i = 0; i < 3; i++) assert_ptr_equal(json_string(&json, i + 1).data, strings[i].data);
  assert_true(bytes_equal_text(strings[0], "A") && bytes_equal_text(strings[1], "b\n") &&
              bytes_equal_text(strings[2], "\t\t\t"));
}

static void members_are_found_by_exact_key(void **state) {
  (void)state;
  parsed("{\"a\":{\"b\":1},\"b\":[2,3],\"\":4,\"\\u0063\":5,\"A\":6}");
  assert_true(bytes_equal_text(json_raw(&json, json_member(&json, 0, "a")), "{\"b\":1}"));
  assert_true(bytes_equal_text(json_raw(&json, json_member(&json, 0, "b")), "[2,3]"));
  assert_true(bytes_equal_text(json_raw(&json, json_member(&json, 0, "")), "4"));
  assert_true(bytes_equal_text(json_raw(&json, json_member(&json, 0, "c")), "5"));
  assert_true(bytes_equal_text(json_raw(&json, json_member(&json, 0, "A")), "6"));
  assert_int_equal(json_member(&json, 0, "B"), 0);
  assert_int_equal(json_member(&json, 0, "aa"), 0);
  parsed("{}");
  assert_int_equal(json_member(&json, 0, "a"), 0);
}

/* levels of nested arrays or objects, the innermost empty. */
static struct bytes nested(unsigned levels, bool objects) {
  struct buffer text;
  buffer_init(&text, 1 << 20);
  for (unsigned i = 1; i < levels; i++) buffer_append_text(&text, objects ? "{\"a\":" : "[");
  buffer_append_text(&text, objects ? "{}" : "[]");
  for (unsigned i = 1; i < levels; i++) buffer_append_char(&text, objects ? '}' : ']');
  assert_false(text.failed);
  return buffer_bytes(&text);
}

static void depth_64_is_taken_and_65_is_not(void **state) {
  (void)state;
  for (int objects = 0; objects <= 1; objects++) {
    struct fault fault = {.status = STATUS_OK};
    struct bytes fits = nested(json_depth_max, objects), deep = nested(json_depth_max + 1, objects);
    assert_int_equal(json_parse(&json, fits, &fault), STATUS_OK);
    assert_int_equal(json_parse(&json, deep, &fault), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(fault.message, "nested too deeply"));
    assert_int_equal(strlen(fault.field), 2 * json_depth_max); /* "/a/a/…" or "/0/0/…": the value that is too deep */
    free((void *)fits.data);
    free((void *)deep.data);
  }
}

/* Answers hold documents a few levels deeper than requests may. A reader of answers stays one over json_clear. */
static void readers_of_answers_take_72_levels(void **state) {
  (void)state;
  struct json answers;
  json_init_answers(&answers);
  for (unsigned round = 0; round < 2; round++) {
    struct fault fault = {.status = STATUS_OK};
    struct bytes fits = nested(json_answer_depth_max, true), deep = nested(json_answer_depth_max + 1, true);
    struct buffer out;
    buffer_init(&out, 1 << 20);
    assert_int_equal(json_parse(&answers, fits, &fault), STATUS_OK);
    json_canonical(&answers, 0, &out);
    assert_true(bytes_equal(buffer_bytes(&out), fits));
    assert_int_equal(json_parse(&answers, deep, &fault), STATUS_INVALID_ARGUMENT);
    buffer_clear(&out);
    free((void *)fits.data);
    free((void *)deep.data);
    json_clear(&answers);
  }
}

static void tokens_are_bounded(void **state) {
  struct buffer text;
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  buffer_init(&text, 4 * json_tokens_max);
  buffer_append_char(&text, '[');
  for (uint32_t i = 0; i < json_tokens_max - 1; i++) buffer_append(&text, "0,", 2); /* the array itself is a token */
  text.data[text.size - 1] = ']';
  assert_int_equal(json_parse(&json, buffer_bytes(&text), &fault), STATUS_OK);
  assert_int_equal(json.count, json_tokens_max);
  text.data[text.size - 1] = ',';
  buffer_append_text(&text, "0]");
  assert_int_equal(json_parse(&json, buffer_bytes(&text), &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/1048575");
  assert_non_null(strstr(fault.message, "too many values"));
  buffer_clear(&text);
  parsed("[1]"); /* and the parser goes on, without what it had to allocate */
  assert_true(json.capacity <= json_tokens_kept_max);
}

static void a_key_that_is_one_token_too_many_blames_its_object(void **state) {
  struct buffer text;
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  buffer_init(&text, 4 * json_tokens_max);
  buffer_append_char(&text, '[');
  for (uint32_t i = 0; i < json_tokens_max - 2; i++) buffer_append(&text, "0,", 2);
  buffer_append_text(&text, "{\"a\":1}]");
  assert_int_equal(json_parse(&json, buffer_bytes(&text), &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/1048574");
  buffer_clear(&text);
}

static void texts_are_bounded(void **state) {
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  uint8_t *text = malloc(json_text_bytes_max + 1);
  memset(text, ' ', json_text_bytes_max + 1);
  text[7] = '0';
  assert_int_equal(json_parse(&json, bytes_of(text, json_text_bytes_max), &fault), STATUS_OK);
  assert_int_equal(json_parse(&json, bytes_of(text, json_text_bytes_max + 1), &fault), STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(fault.message, "too long"));
  free(text);
}

/* An object with count keys made by format; from `first` on, a key is the one of number i - first. */
static struct bytes keyed(unsigned count, const char *format, unsigned first) {
  struct buffer text;
  buffer_init(&text, 16 << 20);
  for (unsigned i = 0; i < count; i++) {
    char key[64];
    (void)snprintf(key, sizeof key, format, i < first ? i : i - first);
    buffer_append_format(&text, "%c\"%s\":1", i == 0 ? '{' : ',', key);
  }
  buffer_append_char(&text, '}');
  assert_false(text.failed);
  return buffer_bytes(&text);
}

static void duplicates_are_found_among_any_number_of_keys(void **state) {
  static const unsigned counts[] = {2, 15, 16, 17, 18, 31, 32, 33, 64, 65, 100, 1000, 4097};
  static const char *const formats[] = {"%u", "k%04u", "same8byt%u", "%u long enough for more than a prefix"};
  (void)state;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    for (size_t j = 0; j < sizeof formats / sizeof formats[0]; j++) {
      struct fault fault = {.status = STATUS_OK};
      char pointer[64] = "/";
      struct bytes sound = keyed(counts[i], formats[j], counts[i]);
      assert_int_equal(json_parse(&json, sound, &fault), STATUS_OK);
      struct bytes twice = keyed(counts[i], formats[j], counts[i] - 1); /* the last key is the first one again */
      assert_int_equal(json_parse(&json, twice, &fault), STATUS_INVALID_ARGUMENT);
      (void)snprintf(pointer + 1, sizeof pointer - 1, formats[j], 0);
      assert_string_equal(fault.field, pointer);
      free((void *)sound.data);
      free((void *)twice.data);
    }
  }
}

static void the_first_duplicate_is_named(void **state) {
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  struct bytes twice = keyed(40, "%02u", 20); /* keys 20 to 39 repeat 0 to 19 */
  assert_int_equal(json_parse(&json, twice, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/00");
  assert_non_null(strstr(fault.message, "at byte 142")); /* 20 keys of 7 bytes, the bracket and the quote */
  free((void *)twice.data);
}

static void keys_of_neighbouring_lengths_differ(void **state) {
  (void)state;
  parsed(
      "{\"\":0,\"a\":0,\"aa\":0,\"aaa\":0,\"aaaa\":0,\"aaaaa\":0,\"aaaaaa\":0,\"aaaaaaa\":0,\"aaaaaaaa\":0,\"aaaaaaaaa\":0,"
      "\"aaaaaaaaaa\":0,\"b\":0,\"aaaaaaab\":0,\"aaaaaaaab\":0,\"\\u0001\":0,\"a\\u0001\":0,\"aaaaaaa\\u0001\":0,"
      "\"aaaaaaaa\\u0001\":0,\"\xF4\x8F\xBF\xBF\":0,\"\xC2\x80\":0}");
  assert_int_equal(json.tokens[0].count, 20);
}

/* Keys chosen to collide in a hash with a known seed gain nothing here: there is no hash, and n log n comparisons are the most.
 * The worst for a sort is that every comparison goes to the end of the keys. */
static void a_hundred_thousand_keys_are_read(void **state) {
  struct fault fault = {.status = STATUS_OK};
  (void)state;
  struct bytes sound = keyed(100000, "%u", 100000),
               prefixed = keyed(100000, "a prefix that all keys have in common %u", 100000),
               twice = keyed(100000, "a prefix that all keys have in common %u", 99999);
  assert_int_equal(json_parse(&json, sound, &fault), STATUS_OK);
  assert_int_equal(json.tokens[0].count, 100000);
  assert_int_equal(json_parse(&json, prefixed, &fault), STATUS_OK);
  assert_int_equal(json_parse(&json, twice, &fault), STATUS_INVALID_ARGUMENT);
  assert_string_equal(fault.field, "/a prefix that all keys have in common 0");
  free((void *)sound.data);
  free((void *)prefixed.data);
  free((void *)twice.data);
}

static void pointers_name_every_token(void **state) {
  static const char *const pointers[] = {"",     "/a",       "/a",       "/a/0", "/a/1", "/a/1/b", "/a/1/b",
                                         "/a/2", "/m~0n~1o", "/m~0n~1o", "/",    "/",    "/\n",    "/\n"};
  (void)state;
  parsed("{\"a\":[1,{\"b\":2},[]],\"m~n/o\":{},\"\":\"x\",\"\\n\":null}");
  assert_int_equal(json.count, sizeof pointers / sizeof pointers[0]);
  for (uint32_t i = 0; i < json.count; i++) {
    char out[64];
    json_pointer(&json, i, out, sizeof out);
    assert_string_equal(out, pointers[i]);
  }
}

static void long_pointers_are_cut_between_characters(void **state) {
  static const struct {
    const char *text;
    size_t size;
    const char *pointer;
  } cases[] = {
      {"{\"abcdefgh\":1}", 10, "/abcdefgh"},
      {"{\"abcdefghi\":1}", 10, "/abcde\xE2\x80\xA6"},
      {"{\"abcdefghijklmn\":1}", 10, "/abcde\xE2\x80\xA6"},
      {"{\"abc\xE5\xB7\xB2\xE6\xA0\xB8\":1}", 10, "/abc\xE2\x80\xA6"},
      {"{\"abcd~~~~\":1}", 10, "/abcd\xE2\x80\xA6"},
      {"{\"abcdefg\":{\"h\":1}}", 11, "/abcdefg/h"},
      {"{\"abcdefg\":{\"hi\":1}}", 11, "/abcdef\xE2\x80\xA6"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char out[16] = "";
    parsed(cases[i].text);
    json_pointer(&json, json.count - 1, out, cases[i].size);
    assert_string_equal(out, cases[i].pointer);
    assert_true(strlen(out) < cases[i].size);
  }
}

static void a_parser_is_used_again(void **state) {
  (void)state;
  assert_int_equal(parse("[\"\\n\",", NULL), STATUS_INVALID_ARGUMENT);
  parsed("[\"\\t\"]");
  assert_true(bytes_equal_text(json_string(&json, 1), "\t"));
  json_clear(&json);
  parsed("[\"\\b\",\"abcdefgh\"]");
  assert_true(bytes_equal_text(json_string(&json, 1), "\b"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_what_rfc_8259_allows),
      cmocka_unit_test(refuses_and_names_the_place),
      cmocka_unit_test(refuses_any_proper_prefix),
      cmocka_unit_test(tokens_tell_where_and_how_many),
      cmocka_unit_test(strings_are_decoded),
      cmocka_unit_test(decoded_strings_stay_where_they_are),
      cmocka_unit_test(members_are_found_by_exact_key),
      cmocka_unit_test(depth_64_is_taken_and_65_is_not),
      cmocka_unit_test(readers_of_answers_take_72_levels),
      cmocka_unit_test(tokens_are_bounded),
      cmocka_unit_test(a_key_that_is_one_token_too_many_blames_its_object),
      cmocka_unit_test(texts_are_bounded),
      cmocka_unit_test(duplicates_are_found_among_any_number_of_keys),
      cmocka_unit_test(the_first_duplicate_is_named),
      cmocka_unit_test(keys_of_neighbouring_lengths_differ),
      cmocka_unit_test(a_hundred_thousand_keys_are_read),
      cmocka_unit_test(pointers_name_every_token),
      cmocka_unit_test(long_pointers_are_cut_between_characters),
      cmocka_unit_test(a_parser_is_used_again),
  };
  return cmocka_run_group_tests_name("json", tests, set_up, tear_down);
}
