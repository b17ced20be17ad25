package load

import (
	"slices"

	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// EveryStep is the value of --full-refresh without a list of steps.
const EveryStep = "*"

// RefreshedSteps returns the steps that --full-refresh selects.
func RefreshedSteps(streams cli.Streams, book *playbook.Playbook, named []string) ([]string, error) {
	if len(named) == 0 {
		return nil, nil
	}
	if slices.Contains(named, EveryStep) {
		named = book.FullRefreshable()
		if len(named) == 0 {
			return nil, cli.UsageError("--full-refresh: no step of playbook %s has incremental, so every run reads everything", book.Name)
		}
	}
	if err := book.CheckFullRefresh(named); err != nil {
		return nil, cli.UsageError("--full-refresh: %w", err)
	}
	return named, nil
}
