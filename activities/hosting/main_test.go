package hosting_test

import (
	"testing"

	"reprise/internal/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
