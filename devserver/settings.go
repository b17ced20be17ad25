package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.temporal.io/server/common/dynamicconfig"
)

// raisedRate replaces rate limits that are chosen for shared clusters. One
// process with SQLite is bound by its CPU long before it.
const raisedRate = 5000

// raisedLimits are the settings in which this server differs from a cluster.
//
// The poll limits come first in importance: a queue processor reads its queue
// 20 times per second and shard by default, which caps a chain of child
// workflows at a few per second whatever the worker does. Limits that protect
// data, such as history length and payload size, stay at their defaults, so
// that a playbook which runs here also runs on a cluster.
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

// dynamicConfig returns the server's settings: raised limits, fairness between keys,
// nothing that calls home, and on top what the command line says.
func dynamicConfig(overrides map[string]any, httpHost string) dynamicconfig.StaticClient {
	conf := dynamicconfig.StaticClient{
		// The version check sends usage data to the vendor.
		dynamicconfig.MakeKey("frontend.enableServerVersionCheck"): false,
		// Enough for local work, and it keeps memory small.
		dynamicconfig.MakeKey("history.hostLevelCacheMaxSize"): 8192,
		// Runs on one task queue take turns, as those of starter expect. Each
		// partition of a queue takes turns by itself, so new work goes to one:
		// parts are for servers of several hosts. All are still read, because a
		// file may hold work in others.
		dynamicconfig.MakeKey("matching.enableFairness"):              true,
		dynamicconfig.MakeKey("matching.numTaskqueueWritePartitions"): 1,
	}
	for _, key := range raisedLimits {
		conf[dynamicconfig.MakeKey(key)] = raisedRate
	}
	for key, value := range overrides {
		conf[dynamicconfig.MakeKey(key)] = value
	}
	// Last, for it is no setting of the user's: see newHTTPAPI.
	conf[dynamicconfig.FrontendHTTPAllowedHosts.Key()] = []any{httpHost}
	return conf
}

// parseSetting reads KEY=JSON. Whole numbers become int, because the server
// refuses a float where a setting is an integer.
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
