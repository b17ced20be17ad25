package localserver

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// PayloadStore is the address of the payload store of the local server that
// `starter dev` keeps up in the working directory at the given address; "" if
// that is not its address.
func PayloadStore(address string) string {
	data, err := os.ReadFile(filepath.Join(".reprise", "dev.json"))
	if err != nil {
		return ""
	}
	var state struct {
		Address      string `json:"address"`
		PayloadStore string `json:"payload_store"`
	}
	if json.Unmarshal(data, &state) != nil || state.Address != address {
		return ""
	}
	return state.PayloadStore
}
