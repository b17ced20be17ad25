package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/dynamicconfig"
)

func TestParseSetting(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text, key string
		want      any
	}{
		{"a.b=true", "a.b", true},
		{"a.b=5", "a.b", 5},
		{"a.b=0.5", "a.b", 0.5},
		{`a.b="5s"`, "a.b", "5s"},
		{`a.b={"n": [1, 2.5]}`, "a.b", map[string]any{"n": []any{1, 2.5}}},
	} {
		key, value, err := parseSetting(row.text)
		require.NoError(t, err, row.text)
		require.Equal(t, row.key, key)
		require.Equal(t, row.want, value)
	}
}

func TestParseSettingErrors(t *testing.T) {
	t.Parallel()
	_, _, err := parseSetting("a.b=5s")
	require.ErrorContains(t, err, `value "5s" of a.b holds more than one JSON value`)
	_, _, err = parseSetting("a.b=yes")
	require.EqualError(t, err, `value "yes" of a.b is not JSON, quote text as in a.b="yes"`)
}

func TestDynamicConfigReachesTheServersOwnTypes(t *testing.T) {
	t.Parallel()
	settings := map[string]any{"history.timerProcessorMaxPollRPS": 7}
	values := dynamicconfig.NewCollection(dynamicConfig(settings, "none"), nil)

	require.Equal(t, 5000, dynamicconfig.TransferProcessorMaxPollRPS.Get(values)())
	require.Equal(t, 7, dynamicconfig.TimerProcessorMaxPollRPS.Get(values)(), "the command line wins")
	require.False(t, dynamicconfig.EnableServerVersionCheck.Get(values)(), "it would call home")
	const activities = enums.TASK_QUEUE_TYPE_ACTIVITY
	fairness := dynamicconfig.MatchingEnableFairness.Get(values)("default", "reprise", activities)
	require.True(t, fairness.Value(nil, time.Now()))
	require.Equal(t, 1, dynamicconfig.MatchingNumTaskqueueWritePartitions.Get(values)("default", "reprise", activities))
}

func TestRaisedLimitsNameSettingsTheServerKnows(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, key := range []dynamicconfig.Key{
		dynamicconfig.TransferProcessorMaxPollRPS.Key(),
		dynamicconfig.TimerProcessorMaxPollRPS.Key(),
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(),
		dynamicconfig.OutboundProcessorMaxPollRPS.Key(),
		dynamicconfig.ArchivalProcessorMaxPollRPS.Key(),
		dynamicconfig.FrontendRPS.Key(),
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key(),
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(),
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(),
		dynamicconfig.MatchingRPS.Key(),
		dynamicconfig.HistoryRPS.Key(),
		dynamicconfig.HistoryPersistenceMaxQPS.Key(),
		dynamicconfig.FrontendPersistenceMaxQPS.Key(),
		dynamicconfig.MatchingPersistenceMaxQPS.Key(),
	} {
		known[key.String()] = true
	}
	for _, name := range raisedLimits {
		require.True(t, known[dynamicconfig.MakeKey(name).String()], name)
	}
}
