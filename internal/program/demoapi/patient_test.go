package demoapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

func TestPatientList(t *testing.T) {
	t.Parallel()
	a := get(t, start(t, demoapi.Options{}).URL()+"/api/v1/patients")
	require.Equal(t, 25.0, a.at("total"))
	var want []any
	for n := 1; n <= 25; n++ {
		want = append(want, fmt.Sprintf("p%02d", n))
	}
	require.Equal(t, want, a.at("ids"))
	require.Equal(t, want, a.ids("data"))
	require.Len(t, demoapi.Patients(), 25)
}

// readAll reads every page of a patient, each page again until it is not 429 or
// 503, and returns the rows and the faults it met.
func readAll(t *testing.T, base, scenario, patient string) (rows []demoapi.Medication, faults []demoapi.Fault, status int) {
	t.Helper()
	for page := 1; ; {
		a := get(t, fmt.Sprintf("%s/api/v1/patients/%s/medications?page=%d", base, patient, page), "X-Scenario: "+scenario)
		switch a.status {
		case 503, 429:
			fault := demoapi.Fault{Patient: patient, Page: page, Status: a.status}
			if a.header.Get("Retry-After") == "1" {
				fault.RetryAfter = 1
			}
			faults = append(faults, fault)
			continue
		case 200:
		default:
			return rows, faults, a.status
		}
		var body struct {
			Data   []demoapi.Medication
			Paging struct {
				HasMore            bool
				Page, Pages, Total int
			}
		}
		require.NoError(t, json.Unmarshal([]byte(a.text), &body))
		require.Equal(t, page, body.Paging.Page)
		require.Equal(t, demoapi.MedicationPages(patient), body.Paging.Pages)
		require.Equal(t, len(demoapi.Medications(patient)), body.Paging.Total)
		rows = append(rows, body.Data...)
		if !body.Paging.HasMore {
			return rows, faults, 200
		}
		page++
	}
}

func TestMedicationsServeWhatTheGoFunctionsSay(t *testing.T) {
	t.Parallel()
	api := start(t, demoapi.Options{})
	for _, scenario := range []string{"one", "two"} {
		var rows []demoapi.Medication
		var faults []demoapi.Fault
		for _, patient := range demoapi.Patients() {
			got, met, status := readAll(t, api.URL(), scenario, patient)
			if patient == demoapi.MissingPatient {
				require.Equal(t, 404, status)
				require.Empty(t, demoapi.Medications(patient))
				continue
			}
			require.Equal(t, 200, status)
			require.Equal(t, demoapi.Medications(patient), got)
			rows, faults = append(rows, got...), append(faults, met...)
		}
		require.Equal(t, demoapi.AllMedications(), rows)
		require.Len(t, rows, demoapi.MedicationRows())
		require.Equal(t, demoapi.FirstRequestFaults(), faults)
		require.Equal(t, demoapi.MedicationRequests(), api.CountRequests(scenario, "/api/v1/patients/"))
	}
	require.Equal(t, 404, get(t, api.URL()+"/api/v1/patients/p26/medications").status)
}

// TestMedicationData pins the figures that playbooks and documents quote.
func TestMedicationData(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, row := range demoapi.AllMedications() {
		require.False(t, ids[row.ID], "%s twice", row.ID)
		require.Equal(t, row.PatientID, row.ID[:3])
		require.Positive(t, row.DoseMG)
		ids[row.ID] = true
	}
	pages := map[int]int{}
	for _, patient := range demoapi.Patients() {
		pages[demoapi.MedicationPages(patient)]++
	}
	require.Equal(t, map[int]int{0: 1, 1: 6, 2: 6, 3: 6, 4: 6}, pages)
	require.Equal(t, 250, demoapi.MedicationRows())
	require.Equal(t, 73, demoapi.MedicationRequests())
	require.Equal(t, demoapi.Medication{ID: "p03-m007", PatientID: "p03", Name: "Metformin", DoseMG: 180}, demoapi.Medications("p03")[6])
}
