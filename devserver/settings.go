package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.temporal.io/server/common/dynamicconfig"
)

// raisedRate replaces rate limits that are meant for shared clusters. One process with SQLite reaches the limit of
// its CPU long before this rate.
const raisedRate = 5000

// raisedLimits are the settings in which this server differs from a cluster.
//
// The poll rates matter most: by default a queue processor reads its queue 20 times per second and shard, which
// limits a chain of child workflows to a few per second whatever the worker does. Limits that protect data, such as
// history length and payload size, keep their defaults, so that a playbook that runs here also runs on a cluster.
var raisedLimits = []string{
	"history.transferProcessorMaxPollRPS",
	"history.timerProcessorMaxPollRPS",
	"history.visibilityProcessorMaxPollRPS",
	"history.outboundProcessorMaxPollRPS",
	"history.archivalProcessorMaxPollRPS",
	"frontend.rps",
	"frontend.namespaceRPS",
	"frontend.namespaceRPS.visibility",
	"frontend.namespaceCount",
	"matching.rps",
	"history.rps",
	"history.persistenceMaxQPS",
	"frontend.persistenceMaxQPS",
	"matching.persistenceMaxQPS",
}

// dynamicConfig returns the server's dynamic configuration: raised limits, fairness, no telemetry to the vendor, and
// finally the settings of the command line.
func dynamicConfig(overrides map[string]any, httpHost string) dynamicconfig.StaticClient {
	conf := dynamicconfig.StaticClient{
		// The version check sends usage data to the vendor.
		dynamicconfig.MakeKey("frontend.enableServerVersionCheck"): false,
		// This is enough for local work, and keeps memory low.
		dynamicconfig.MakeKey("history.hostLevelCacheMaxSize"): 8192,
		// Runs on one task queue share it fairly, as starter expects. Fairness applies within a partition, so writes
		// use only one; more are for servers on several hosts. All partitions are still read, because a database file
		// may contain tasks in the others.
		dynamicconfig.MakeKey("matching.enableFairness"):              true,
		dynamicconfig.MakeKey("matching.numTaskqueueWritePartitions"): 1,
	}
	for _, key := range raisedLimits {
		conf[dynamicconfig.MakeKey(key)] = raisedRate
	}
	for key, value := range overrides {
		conf[dynamicconfig.MakeKey(key)] = value
	}
	// This is set last, because no user setting may override it: see newHTTPAPI.
	conf[dynamicconfig.FrontendHTTPAllowedHosts.Key()] = []any{httpHost}
	return conf
}

// parseSetting parses KEY=JSON. Whole numbers become int, because the server rejects a float for an integer setting.
func parseSetting(text string) (string, any, error) {
	key, source, found := strings.Cut(text, "=")
	if !found || key == "" {
		return "", nil, fmt.Errorf("expected KEY=JSON")
	}
	decoder := json.NewDecoder(strings.NewReader(source))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", nil, fmt.Errorf("value %q of %s is not JSON, quote text as in %s=%q", source, key, key, source)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return "", nil, fmt.Errorf("value %q of %s holds more than one JSON value", source, key)
	}
	return key, wholeNumbers(value), nil
}

func wholeNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = wholeNumbers(v[k])
		}
	}
	return value
}
