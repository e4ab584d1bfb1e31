/* Owns two documents made from the table of events: the reference schema/events.md and the fuzz dictionary
 * fuzz/dict/event.dict.
 *
 *   orbit-event-reference [--dictionary] [--check FILE]
 *
 * Prints the document; with --check compares it with FILE and fails where they differ. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the reference ---- */

static const struct {
  const char *type;
  const char *stored;
} field_types[] = {
    {"ID", "bin, 16 bytes"},        {"BIN", "bin"},  {"STR", "str, UTF-8"}, {"JSON", "bin: JSON text"},
    {"IDS", "bin, 16 bytes an id"}, {"U64", "uint"}, {"TIME", "int, µs"},   {"BOOL", "bool"},
};

static void print_type(FILE *out, const char *type) {
  for (size_t i = 0; i < sizeof field_types / sizeof *field_types; i++) {
    if (strcmp(field_types[i].type, type) != 0) continue;
    (void)fputs(field_types[i].stored, out);
    return;
  }
  (void)fprintf(out, "uint: [");
  for (const char *at = type; *at != 0; at++) (void)fputc(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at, out);
  (void)fprintf(out, "](#");
  for (const char *at = type; *at != 0; at++) (void)fputc(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at, out);
  (void)fputc(')', out);
}

static void print_field(FILE *out, unsigned key, const char *type, const char *name, bool required, const char *doc) {
  (void)fprintf(out, "| %u | `%s` | ", key, name);
  print_type(out, type);
  (void)fprintf(out, " | %s | %s |\n", required ? "required" : "optional", doc);
}

enum { presence_REQUIRED = 1, presence_OPTIONAL = 0 };

static const char fields_head[] = "| key | field | stored as | presence | meaning |\n| ---: | --- | --- | --- | --- |\n";

/* The head of an event's fields waits until the first field comes: an event may have none of its own. */
static void print_own_field(FILE *out, bool *has_fields, unsigned key, const char *type, const char *name, bool required,
                            const char *doc) {
  if (!*has_fields) (void)fputs(fields_head, out);
  *has_fields = true;
  print_field(out, key, type, name, required, doc);
}

static void print_introduction(FILE *out) {
  (void)fputs(
      "# Events\n\n"
      "<!-- Made from schema/events.def, schema/words.def and schema/permissions.def by orbit-event-reference: do not edit. "
      "-->\n\n"
      "Every fact that Orbit keeps is one of these events. How a record stands on disk (header, chain, encoding of the body, "
      "what\n"
      "may change between versions) is in [log.md](log.md). The number stands in the header's `type`, the version beside it; "
      "a\n"
      "field stands in the body under its key. Numbers and keys are never reused.\n\n"
      "*required*: always written. *optional*: left out when empty, zero, false or none; a reader takes it as that.\n\n",
      out);
}

static void print_index(FILE *out) {
  (void)fputs("| type | event | version | what it says |\n| ---: | --- | ---: | --- |\n", out);
#define COMMON(key, type, name, presence, doc)
#define EVENT(number, name, text, version, doc) \
  (void)fprintf(out, "| %d | [%s](#%s) | %d | %s |\n", number, text, #name, version, doc);
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)
#include "events.def"
#undef COMMON
#undef EVENT
#undef FIELD
#undef EVENT_END
}

static void print_common(FILE *out) {
  (void)fprintf(out, "\n## Fields that every event may carry\n\n%s", fields_head);
#define COMMON(key, type, name, presence, doc) print_field(out, key, #type, #name, presence_##presence, doc);
#define EVENT(number, name, text, version, doc)
#define FIELD(key, type, name, presence, doc)
#define EVENT_END(name)
#include "events.def"
#undef COMMON
#undef EVENT
#undef FIELD
#undef EVENT_END
}

static void print_events(FILE *out) {
  bool has_fields = false;
#define COMMON(key, type, name, presence, doc)
#define EVENT(number, name, text, version, doc)                                                                      \
  (void)fprintf(out, "\n## <a id=\"%s\"></a>%s\n\nType %d, version %d: %s.\n\n", #name, text, number, version, doc); \
  has_fields = false;
#define FIELD(key, type, name, presence, doc) print_own_field(out, &has_fields, key, #type, #name, presence_##presence, doc);
#define EVENT_END(name) \
  if (!has_fields) (void)fputs("It has no fields of its own.\n", out);
#include "events.def"
#undef COMMON
#undef EVENT
#undef FIELD
#undef EVENT_END
}

static void print_words(FILE *out) {
  (void)fputs("\n## Vocabularies\n\nThe number is what the body holds. 0 means none in each and is never written.\n", out);
#define WORDS(set, prefix) (void)fprintf(out, "\n### %s\n\n| number | word |\n| ---: | --- |\n", #set);
#define WORD(prefix, number, name) (void)fprintf(out, "| %d | %s |\n", number, #name);
#define WORDS_END(set, prefix)
#include "words.def"
#undef WORDS
#undef WORD
#undef WORDS_END
  (void)fputs(
      "\n### Permissions\n\n`permissions` of credential.created is the sum of these.\n\n| bit | value | permission |\n"
      "| ---: | ---: | --- |\n",
      out);
#define PERMISSION(bit, name, text) (void)fprintf(out, "| %d | %lu | `%s` |\n", bit, 1UL << (bit), text);
#include "permissions.def"
#undef PERMISSION
}

static void print_reference(FILE *out) {
  print_introduction(out);
  print_index(out);
  print_common(out);
  print_events(out);
  print_words(out);
}

/* ---- the dictionary ---- */

/* What stands behind the key of a field of this type: the marker, and the value where it is short. */
static const struct {
  const char *type;
  const char *bytes;
} dictionary_values[] = {
    {"ID", "\\xc4\\x10"},  {"BIN", "\\xc4\\x20"}, {"STR", "\\xd9\\x20"},       {"JSON", "\\xc4\\x02{}"},
    {"IDS", "\\xc4\\x20"}, {"U64", "\\xcd\\x01"}, {"TIME", "\\xcf\\x00\\x06"}, {"BOOL", "\\xc3"},
};

/* Once for each key and type, however many events have them: printed[key] has bit i for the i-th type. */
static void print_dictionary_field(FILE *out, unsigned printed[256], unsigned key, const char *type) {
  size_t i = 0, count = sizeof dictionary_values / sizeof *dictionary_values;
  while (i < count && strcmp(dictionary_values[i].type, type) != 0) i++;
  if ((printed[key] >> i & 1) != 0) return;
  printed[key] |= 1U << i;
  (void)fprintf(out, "key_%u_%s=\"\\x%02x%s\"\n", key, i < count ? type : "WORD", key,
                i < count ? dictionary_values[i].bytes : "\\x01");
}

static void print_dictionary(FILE *out) {
  unsigned printed[256] = {0};
  (void)fputs("# Made from schema/events.def by orbit-event-reference --dictionary: do not edit.\n", out);
  (void)fputs("# Type and version as they stand in the header, then keys with the beginnings of their values.\n", out);
#define COMMON(key, type, name, presence, doc) print_dictionary_field(out, printed, key, #type);
#define EVENT(number, name, text, version, doc)                                                                  \
  (void)fprintf(out, "%s=\"\\x%02x\\x%02x\\x%02x\\x%02x\"\n", #name, (number)&255, (number) >> 8, (version)&255, \
                (version) >> 8);
#define FIELD(key, type, name, presence, doc) print_dictionary_field(out, printed, key, #type);
#define EVENT_END(name)
#include "events.def"
#undef COMMON
#undef EVENT
#undef FIELD
#undef EVENT_END
}

/* ---- comparing ---- */

/* The first line in which they differ, counted from 1; 0: none. */
static unsigned long differing_line(FILE *made, FILE *found) {
  unsigned long line = 1;
  for (;;) {
    int a = getc(made), b = getc(found);
    if (a != b) return line;
    if (a == EOF) return 0;
    if (a == '\n') line++;
  }
}

static int check(void (*print)(FILE *out), const char *path) {
  FILE *made = tmpfile(), *found = fopen(path, "r");
  int result = EXIT_FAILURE;
  if (made == NULL || found == NULL) {
    perror(path);
  } else {
    print(made);
    rewind(made);
    unsigned long line = differing_line(made, found);
    if (line == 0) result = EXIT_SUCCESS;
    else (void)fprintf(stderr, "%s:%lu: differs from what the table of events says; print it anew\n", path, line);
  }
  if (made != NULL) (void)fclose(made);
  if (found != NULL) (void)fclose(found);
  return result;
}

int main(int argc, char **argv) {
  void (*print)(FILE * out) = print_reference;
  int next = 1;
  if (next < argc && strcmp(argv[next], "--dictionary") == 0) {
    print = print_dictionary;
    next++;
  }
  if (argc - next == 2 && strcmp(argv[next], "--check") == 0) return check(print, argv[next + 1]);
  if (next != argc) {
    (void)fprintf(stderr, "usage: orbit-event-reference [--dictionary] [--check FILE]\n");
    return EXIT_FAILURE;
  }
  print(stdout);
  return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
}
