package localserver

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
)

// Kept is what `starter dev` has written of the server that it runs in the working
// directory.
type Kept struct {
	Address      string `json:"address"`
	PayloadStore string `json:"payload_store"`
	Key          string `json:"key"` // that clients must send, "" for none
}

// KeptAt is the server of `starter dev` if that is the one at the given address,
// else the zero value.
func KeptAt(address string) Kept {
	data, err := os.ReadFile(filepath.Join(".reprise", "dev.json"))
	if err != nil {
		return Kept{}
	}
	var kept Kept
	if json.Unmarshal(data, &kept) != nil || spelled(kept.Address) != spelled(address) {
		return Kept{}
	}
	return kept
}

// spelled is an address with one name for this machine: people type localhost.
func spelled(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
		return net.JoinHostPort("localhost", port)
	}
	return address
}
