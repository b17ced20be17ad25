package main

import (
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
)

const (
	clusterName = "active"
	storeName   = "main"
	// visibilityName is the store of visibility, which may be another database.
	visibilityName = "visibility"
	// historyShards is more than one, so that runs do not queue behind each other, and low, because every shard costs
	// polling. A database file keeps the number that it was created with.
	historyShards = 4
)

func serverConfig(opts options, chosen ports, store storage) *config.Config {
	frontend := address(reachableIP(opts.ip), chosen.frontend)
	disabled := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	conf := &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback},
		},
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  visibilityName,
			NumHistoryShards: historyShards,
			DataStores:       map[string]config.DataStore{storeName: {SQL: store.main}, visibilityName: {SQL: store.visibility}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {
					Enabled:                true,
					InitialFailoverVersion: 1,
					RPCAddress:             frontend,
				},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): {RPC: config.RPC{
				GRPCPort: chosen.frontend, HTTPPort: chosen.httpInternal, BindOnIP: opts.ip,
			}},
			string(primitives.HistoryService):  internalService(chosen.history),
			string(primitives.MatchingService): internalService(chosen.matching),
			string(primitives.WorkerService):   internalService(chosen.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: disabled},
		PublicClient:      config.PublicClient{HostPort: frontend},
	}
	if chosen.metrics != 0 {
		conf.Global.Metrics = &metrics.Config{Prometheus: &metrics.PrometheusConfig{
			Framework: metrics.FrameworkOpentelemetry, ListenAddress: address(opts.ip, chosen.metrics),
		}}
	}
	if opts.key != "" {
		conf.Services[string(primitives.InternalFrontendService)] = internalService(chosen.internalFrontend)
		conf.PublicClient.HostPort = "" // the server's own workers use the internal one
	}
	return conf
}

// internalService returns the configuration of an internal service. It listens on loopback only, whatever --ip is.
func internalService(port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: loopback}}
}

// serviceHosts returns the addresses at which the services reach each other. They replace gossip.
func serviceHosts(opts options, chosen ports) map[primitives.ServiceName]static.Hosts {
	hosts := map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(address(reachableIP(opts.ip), chosen.frontend)),
		primitives.HistoryService:  static.SingleLocalHost(address(loopback, chosen.history)),
		primitives.MatchingService: static.SingleLocalHost(address(loopback, chosen.matching)),
		primitives.WorkerService:   static.SingleLocalHost(address(loopback, chosen.worker)),
	}
	if opts.key != "" {
		hosts[primitives.InternalFrontendService] = static.SingleLocalHost(address(loopback, chosen.internalFrontend))
	}
	return hosts
}
