/* orbit-sim: a deterministic simulator of Orbit (README "Tests"). One seed gives one run, byte for byte. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/guard.h"
#include "sim/run.h"

enum { steps_default = 1500, steps_max = 100000, together_max = 16 };
enum { EXIT_FOUND = 1, EXIT_MISUSE = 2 };

struct options {
  uint64_t seed, commands, minutes, episode, steps, mistake;
  const char *only;
  bool one_episode, trace;
};

static uint64_t number_of(struct argp_state *state, const char *name, const char *text, uint64_t most) {
  char *end = NULL;
  errno = 0;
  uint64_t number = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != 0 || text[0] == '-' || number > most)
    argp_error(state, "--%s: \"%s\" is not a number from 0 to %" PRIu64, name, text, most);
  return number;
}

static error_t take_option(int key, char *text, struct argp_state *state) {
  struct options *options = state->input;
  switch (key) {
    case 's':
      options->seed = number_of(state, "seed", text, UINT64_MAX);
      break;
    case 'c':
      options->commands = number_of(state, "commands", text, UINT64_MAX);
      break;
    case 'm':
      options->minutes = number_of(state, "minutes", text, 1000000);
      break;
    case 'e':
      options->episode = number_of(state, "episode", text, UINT64_MAX);
      options->one_episode = true;
      break;
    case 'n':
      options->steps = number_of(state, "steps", text, steps_max);
      break;
    case 'o':
      options->only = text;
      break;
    case 't':
      options->trace = true;
      break;
    case 'x':
      options->mistake = number_of(state, "mistake", text, MISTAKE_COUNT - 1);
      break;
    default:
      return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static const struct argp_option option_table[] = {
    {"seed", 's', "N", 0, "where all luck comes from (1)", 0},
    {"commands", 'c', "N", 0, "run until so many commands were given (100000)", 0},
    {"minutes", 'm', "N", 0, "run so long instead", 0},
    {"episode", 'e', "N", 0, "run this episode of the seed alone", 1},
    {"steps", 'n', "N", 0, "steps of an episode (1500)", 1},
    {"only", 'o', "LIST", 0, "of its steps these alone: 3,17,204-210", 1},
    {"trace", 't', NULL, 0, "print the steps", 1},
    {"mistake", 'x', "N", 0, "put mistake N into the model, to see it found", 2},
    {0},
};

const char *argp_program_version = "orbit-sim " ORBIT_VERSION;

/* ---- the steps of one episode ---- */

static uint64_t episode_seed(const struct options *options, uint64_t number) {
  const uint64_t both[2] = {options->seed, number};
  return XXH3_64bits(both, sizeof both);
}

/* 3,17,204-210 as a list; false: it is none. */
static bool parse_only(const char *text, uint32_t *kept, uint32_t most, uint32_t *ret_count) {
  uint32_t count = 0;
  while (*text != 0) {
    char *end = NULL;
    uint64_t from = strtoull(text, &end, 10), to = from;
    if (end == text) return false;
    if (*end == '-') {
      text = end + 1;
      to = strtoull(text, &end, 10);
      if (end == text) return false;
    }
    if (from > to || to >= most || (count != 0 && from <= kept[count - 1])) return false;
    for (uint64_t i = from; i <= to; i++) kept[count++] = (uint32_t)i;
    if (*end == ',') end++;
    else if (*end != 0) return false;
    text = end;
  }
  *ret_count = count;
  return true;
}

static void print_only(const uint32_t *kept, uint32_t count) {
  for (uint32_t i = 0; i < count;) {
    uint32_t end = i;
    while (end + 1 < count && kept[end + 1] == kept[end] + 1) end++;
    (void)printf(end == i ? "%s%u" : "%s%u-%u", i == 0 ? "" : ",", kept[i], kept[end]);
    i = end + 1;
  }
}

/* ---- telling ---- */

static unsigned count_faults(const struct step *steps, const uint32_t *kept, uint32_t count) {
  unsigned faults = 0;
  for (uint32_t i = 0; i < count; i++) faults += step_is_fault(steps[kept != NULL ? kept[i] : i].kind);
  return faults;
}

static void tell_violation(const struct options *options, uint64_t number, const struct episode *episode,
                           const struct episode_result *result) {
  struct shrunk shrunk;
  (void)printf("violation in episode %" PRIu64 " of seed %" PRIu64 ", at step %u: %s\n", number, options->seed, result->step,
               result->complaint);
  shrink(episode, result, &shrunk);
  (void)printf("shrunk from %u steps with %u faults to %u steps with %u faults, in %u runs: %s\n", episode->count,
               count_faults(episode->steps, NULL, episode->count), shrunk.count,
               count_faults(episode->steps, shrunk.kept, shrunk.count), shrunk.runs, shrunk.result.complaint);
  cleanup(guard_free) struct step *steps = steps_pick(episode->steps, shrunk.kept, shrunk.count);
  struct episode traced = {episode->seed, steps, shrunk.count, episode->mistake, true};
  struct episode_result again;
  (void)run_apart(&traced, &again);
  (void)printf("repeat with: orbit-sim --seed %" PRIu64 " --episode %" PRIu64 " --steps %u", options->seed, number,
               episode->count);
  if (options->mistake != 0) (void)printf(" --mistake %" PRIu64, options->mistake);
  (void)printf(" --only ");
  print_only(shrunk.kept, shrunk.count);
  (void)printf("\n");
  free(shrunk.kept);
}

static void add_counts(struct sim_counts *sum, const struct sim_counts *counts) {
  const uint64_t digests[2] = {sum->digest, counts->digest};
  sum->commands += counts->commands;
  sum->commits += counts->commits;
  sum->events += counts->events;
  sum->steps += counts->steps;
  sum->left += counts->left;
  for (unsigned i = 0; i < FAULT_COUNT; i++) sum->faults[i] += counts->faults[i];
  sum->digest = XXH3_64bits(digests, sizeof digests);
}

static void tell_counts(const struct sim_counts *sum, uint64_t episodes, uint64_t violations) {
  (void)printf("commands %" PRIu64 "\ncommits %" PRIu64 "\nevents %" PRIu64 "\nepisodes %" PRIu64 "\nleft memory %" PRIu64 "\n",
               sum->commands, sum->commits, sum->events, episodes, sum->left);
  for (unsigned i = 0; i < FAULT_COUNT; i++)
    (void)printf("faults %" PRIu64 " %s\n", sum->faults[i], fault_kind_text((enum fault_kind)i));
  (void)printf("violations %" PRIu64 "\ndigest %016" PRIx64 "\n", violations, sum->digest);
}

/* ---- the run ---- */

/* Runs episodes from number on until one fails or the sum has the commands that were asked for. Returns how many went well. */
static uint32_t run_some(const struct options *options, uint64_t number, uint32_t count, struct step *steps,
                         struct sim_counts *sum) {
  struct episode episodes[together_max] = {{.count = 0}};
  struct episode_result results[together_max];
  for (uint32_t i = 0; i < count; i++) {
    struct step *own = steps + i * options->steps;
    episodes[i] = (struct episode){episode_seed(options, number + i), own, (uint32_t)options->steps,
                                   (enum mistake)options->mistake, options->trace};
    episode_steps(episodes[i].seed, own, episodes[i].count);
  }
  uint32_t good = run_together(episodes, count, results);
  for (uint32_t i = 0; i < count && i <= good; i++) add_counts(sum, &results[i].counts);
  if (good < count) tell_violation(options, number + good, &episodes[good], &results[good]);
  return good;
}

static int run_only(const struct options *options, struct step *steps) {
  cleanup(guard_free) uint32_t *kept = guard_malloc((options->steps + 1) * sizeof *kept);
  uint32_t count = 0;
  if (!parse_only(options->only, kept, (uint32_t)options->steps, &count)) {
    (void)fprintf(stderr, "orbit-sim: --only: \"%s\" is not a list of rising step numbers below %" PRIu64 "\n", options->only,
                  options->steps);
    return EXIT_MISUSE;
  }
  uint64_t seed = episode_seed(options, options->episode);
  struct episode_result result;
  episode_steps(seed, steps, (uint32_t)options->steps);
  cleanup(guard_free) struct step *picked = steps_pick(steps, kept, count);
  struct episode episode = {seed, picked, count, (enum mistake)options->mistake, true};
  bool good = run_apart(&episode, &result);
  struct sim_counts sum = {.commands = 0};
  add_counts(&sum, &result.counts);
  if (!good) (void)printf("violation at step %u: %s\n", result.step, result.complaint);
  tell_counts(&sum, 1, !good);
  return good ? EXIT_SUCCESS : EXIT_FOUND;
}

/* Few at first: a small run makes no more commands than were asked for by much. */
static uint32_t together_for(const struct options *options, const struct sim_counts *sum, uint64_t episodes) {
  if (options->minutes != 0) return together_max;
  if (episodes == 0) return 1;
  uint64_t each = sum->commands / episodes + 1, left = (options->commands - sum->commands) / each;
  return left < 1 ? 1 : left < together_max ? (uint32_t)left : together_max;
}

/* Until a violation, or as long as was asked for. */
static int run_all(const struct options *options, struct step *steps) {
  struct sim_counts sum = {.commands = 0};
  time_t end = time(NULL) + (time_t)options->minutes * 60;
  uint64_t episodes = 0, violations = 0;
  bool more = true;
  while (more) {
    uint32_t count = options->one_episode ? 1 : together_for(options, &sum, episodes);
    uint32_t good = run_some(options, options->episode + episodes, count, steps, &sum);
    violations += good < count;
    episodes += good < count ? good + 1 : count;
    more = violations == 0 && !options->one_episode &&
           (options->minutes != 0 ? time(NULL) < end : sum.commands < options->commands);
  }
  tell_counts(&sum, episodes, violations);
  return violations == 0 ? EXIT_SUCCESS : EXIT_FOUND;
}

int main(int count, char **arguments) {
  static const struct argp argp = {
      option_table,
      take_option,
      NULL,
      "A deterministic simulator of Orbit: the real rules, state and engine on a simulated disk, clock and "
      "network, judged by a model of their own. Exit code 0: nothing was wrong; 1: a violation, shrunk.",
      NULL,
      NULL,
      NULL};
  struct options options = {.seed = 1, .commands = 100000, .steps = steps_default};
  argp_err_exit_status = EXIT_MISUSE;
  (void)argp_parse(&argp, count, arguments, 0, NULL, &options);
  cleanup(guard_free) struct step *steps = guard_malloc((options.steps + 1) * together_max * sizeof *steps);
  if (options.only != NULL) return run_only(&options, steps);
  return run_all(&options, steps);
}
