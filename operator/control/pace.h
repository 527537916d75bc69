/* pace - how many objects of one kind a job may create at once. Pure: time is passed in.
 *
 * Any number, until the API server refuses one: by a quota, by Pod Security, by a webhook. Then none for a while, which
 * grows with each round that is refused, and after that one, two, four, ... as long as the server takes them. So a job
 * that has no room asks once in a while, and not with all that it lacks. A round is what was sent before its first
 * refusal came.
 */
#ifndef TRAINYARD_CONTROL_PACE_H
#define TRAINYARD_CONTROL_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    int failures;       /* rounds in a row that were refused */
    int64_t until_ms;   /* none before that */
    int64_t refused_ms; /* when the first refusal of the last round came; 0: never */
    int at_once;        /* 0: any number */
    int under_way;
};

bool pace_allows(const struct pace *p, int64_t now_ms);
/* One that was sent at sent_ms is refused. true: it is the first of its round, the one that is told. */
bool pace_refuse(struct pace *p, int64_t sent_ms, int64_t now_ms);
/* One that was sent at sent_ms is accepted. */
void pace_accept(struct pace *p, int64_t sent_ms);
/* None for at_least_ms, or for the pause after so many failures if that is longer; the number at once stays. */
void pace_pause(struct pace *p, int64_t now_ms, int64_t at_least_ms);
/* Nothing was refused, as after a change of the spec; what is under way stays so. */
void pace_reset(struct pace *p);

/* 1, 2, 4, ... 60 s after 1, 2, 3, ... rounds. */
int64_t pace_pause_ms(int failures);

#endif
