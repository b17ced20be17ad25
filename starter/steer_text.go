package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reprise/internal/render"
	"reprise/internal/terminal"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows"
)

// steerWriter writes answers for eyes as they come, a line for each run that only a
// terminal breaks: what was not done to the standard error.
func (a *app) steerWriter(o *order) func(answer) {
	return func(answer answer) {
		if o.output == "json" {
			return
		}
		to, said := a.Out, answer.Message
		switch answer.Outcome {
		case outcomeRefused:
			to, said = a.Err, "refused: "+said
		case outcomeUnknown:
			to, said = a.Err, "no answer: "+said
		}
		said = terminal.Visible(answer.WorkflowID) + ": " + terminal.Shorten(said, 2000) + "\n"
		if terminal.IsTerminal(to) {
			var b strings.Builder
			terminal.WriteWrapped(&b, said, terminal.PaperOf(to).Width)
			said = b.String()
		}
		_, _ = io.WriteString(to, said)
	}
}

// done says how a run stands after a command.
func (o *order) done(told answer) string {
	what, standing := "", *told.Standing
	if o.Index != nil {
		what = fmt.Sprintf("step %s[%d] ", o.Step, *o.Index)
	} else if o.Step != "" {
		what = "step " + o.Step + " "
	}
	switch o.update {
	case workflows.PauseUpdate:
		if standing.Changed {
			return what + "paused; no other attempt begins"
		}
		return what + "was paused already" + render.Since(standing.Control.Holder(o.Step), time.Now())
	case workflows.ResumeUpdate:
		return o.resumed(what, standing)
	case workflows.SetUpdate:
		return what + "from now on with " + tuningText(standing.Control.Tuned(o.Step))
	}
	if told.Queue != nil && o.update == workflows.RetryNowUpdate && standing.Ended == 1 {
		return "asks again for its turn"
	}
	verb := "tried again now"
	if o.update == workflows.SkipUpdate {
		verb = "given up"
	}
	switch n := *told.Waits; {
	case n > 0 && told.WaitsMore:
		return fmt.Sprintf("%s%s: at least %s ended", what, verb, terminal.Count(n, "wait"))
	case n > 0:
		return fmt.Sprintf("%s%s: %s ended", what, verb, terminal.Count(n, "wait"))
	case standing.Told && told.WaitsMore:
		return fmt.Sprintf("%s%s: what waits there, if anything does", what, verb)
	case standing.Told:
		return fmt.Sprintf("%s%s: nothing waited there", what, verb)
	}
	return what + "nothing waited any more"
}

func (o *order) resumed(what string, standing workflows.Standing) string {
	text := what + "goes on"
	if !standing.Changed {
		text = what + "was not paused"
	}
	if held := render.Paused(standing.Control, time.Now()); held != "" {
		text += "; still " + held
	}
	return text
}

// tuningText is what people have set for a step.
func tuningText(tuning interpreter.Tuning) string {
	var parts []string
	if tuning.MaxConcurrency > 0 {
		parts = append(parts, fmt.Sprintf("%s=%d", keyConcurrency, tuning.MaxConcurrency))
	}
	if rate := tuning.Rate; rate != nil {
		parts = append(parts, fmt.Sprintf("%s=%d/%s", keyRate, rate.Requests, perText(rate.PerSeconds)))
	}
	return strings.Join(parts, " ")
}

// perText is the time of a rate.
func perText(seconds float64) string {
	switch seconds {
	case 1:
		return "s"
	case 60:
		return "m"
	case 3600:
		return "h"
	}
	return time.Duration(seconds * float64(time.Second)).String()
}

// parseTuning reads what is to be set.
func parseTuning(words []string) (interpreter.Tuning, error) {
	var tuning interpreter.Tuning
	if len(words) == 0 {
		return tuning, usageError("say what is to be set: %s=N or %s=20/s", keyConcurrency, keyRate)
	}
	given := map[string]bool{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found {
			return tuning, usageError("%q is no KEY=VALUE, expected such as %s=5 or %s=20/s", word, keyConcurrency, keyRate)
		}
		if err := choice("the key", key, []string{keyConcurrency, keyRate}); err != nil {
			return tuning, err
		}
		if given[key] {
			return tuning, usageError("%s is given twice", key)
		}
		given[key] = true
		if key == keyRate {
			rate, err := parseRate(value)
			if err != nil {
				return tuning, err
			}
			tuning.Rate = &rate
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > playbook.MaxConcurrencyLimit {
			return tuning, usageError("%s=%s: expected a number from 1 to %d", key, value, playbook.MaxConcurrencyLimit)
		}
		tuning.MaxConcurrency = n
	}
	return tuning, nil
}

// What can be set.
const (
	keyConcurrency = "max_concurrency"
	keyRate        = "rate_limit"
)

// longestRate is the longest time that a rate may be told over.
const longestRate = 24 * time.Hour

// parseRate reads a rate such as 20/s, 100/m or 5/30s.
func parseRate(text string) (interpreter.Rate, error) {
	count, per, found := strings.Cut(text, "/")
	if per != "" && !strings.ContainsAny(per[:1], "0123456789") {
		per = "1" + per
	}
	requests, err := strconv.Atoi(count)
	period, unreadable := time.ParseDuration(per)
	if !found || err != nil || unreadable != nil || requests < 1 || period <= 0 || period > longestRate {
		return interpreter.Rate{}, usageError("%s=%s: expected attempts in a time of at most a day, such as 20/s, 100/m, 5/h or 10/30s", keyRate, text)
	}
	return interpreter.Rate{Requests: requests, PerSeconds: period.Seconds()}, nil
}
