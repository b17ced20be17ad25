package demoapi

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
)

const (
	patients        = 25
	medicationsPage = 5 // rows per page of medications
)

// MissingPatient is the one listed patient whose medications are always 404.
const MissingPatient = "p13"

// Medication is one row of /api/v1/patients/{id}/medications.
type Medication struct {
	ID        string `json:"id"` // "p03-m007", unique over all patients
	PatientID string `json:"patient_id"`
	Name      string `json:"name"`
	DoseMG    int    `json:"dose_mg"`
}

// Fault is a failure built into the medications: the first request of a scenario for this page of this patient gets
// Status.
type Fault struct {
	Patient    string
	Page       int
	Status     int
	RetryAfter int // seconds, sent as Retry-After if above 0
}

// PatientID returns the ID of the nth patient, from 1; after the last patient it starts over.
func PatientID(n int) string { return fmt.Sprintf("p%02d", (n-1)%patients+1) }

// Patients returns the IDs that /api/v1/patients lists, in its order.
func Patients() []string {
	ids := make([]string, patients)
	for i := range ids {
		ids[i] = PatientID(i + 1)
	}
	return ids
}

// FirstRequestFaults returns every built-in failure of the medications.
func FirstRequestFaults() []Fault {
	const unavailable, tooMany = http.StatusServiceUnavailable, http.StatusTooManyRequests
	return []Fault{
		{"p02", 2, unavailable, 0},
		{"p03", 1, tooMany, 1},
		{"p05", 1, unavailable, 0},
		{"p07", 2, tooMany, 1},
		{"p08", 3, unavailable, 0},
		{"p11", 1, unavailable, 0},
		{"p12", 4, tooMany, 1},
		{"p16", 4, unavailable, 0},
		{"p18", 2, tooMany, 1},
		{"p20", 2, unavailable, 0},
		{"p23", 1, unavailable, 0},
		{"p24", 3, tooMany, 1},
	}
}

// patientNumber is the inverse of PatientID; it returns 0 for an unknown patient.
func patientNumber(id string) int {
	if len(id) != 3 || id[0] != 'p' {
		return 0
	}
	n, err := strconv.Atoi(id[1:])
	if err != nil || n < 1 || n > patients {
		return 0
	}
	return n
}

// MedicationPages returns how many pages a patient has, from 1 to 4, and 0 for a patient whose medications are 404.
func MedicationPages(id string) int {
	n := patientNumber(id)
	if n == 0 || id == MissingPatient {
		return 0
	}
	return (n-1)%4 + 1
}

// Medications returns all rows of one patient in the order of the pages, none for a patient whose medications are
// 404.
func Medications(id string) []Medication {
	pages := MedicationPages(id)
	if pages == 0 {
		return nil
	}
	names := []string{"Amoxicillin", "Ibuprofen", "Metformin", "Lisinopril", "Atorvastatin", "Omeprazole", "Sertraline"}
	n := patientNumber(id)
	count := (pages-1)*medicationsPage + n*3%medicationsPage + 1
	rows := make([]Medication, count)
	for i := range rows {
		rows[i] = Medication{
			ID:        fmt.Sprintf("%s-m%03d", id, i+1),
			PatientID: id,
			Name:      names[(n+i)%len(names)],
			DoseMG:    (n*11+i*7)%40*5 + 5,
		}
	}
	return rows
}

// AllMedications returns the rows of every patient, in the order of Patients.
func AllMedications() []Medication {
	var rows []Medication
	for _, id := range Patients() {
		rows = append(rows, Medications(id)...)
	}
	return rows
}

// MedicationRows returns the number of rows of all patients together.
func MedicationRows() int { return len(AllMedications()) }

// MedicationRequests returns how many requests for medications are needed to read every page of every patient, if
// each built-in failure occurs once and the 404 is not retried.
func MedicationRequests() int {
	requests := len(FirstRequestFaults()) + 1
	for _, id := range Patients() {
		requests += MedicationPages(id)
	}
	return requests
}

func (s *Server) listPatients(w http.ResponseWriter, r *http.Request) {
	if s.applyFaults(w, &params{r: r}, 1, 0) {
		return
	}
	rows := make([]object, patients)
	for i, id := range Patients() {
		rows[i] = object{"id": id, "name": fmt.Sprintf("Patient %02d", i+1)}
	}
	respondJSON(w, http.StatusOK, object{"data": rows, "ids": Patients(), "total": patients})
}

func (s *Server) listMedications(w http.ResponseWriter, r *http.Request) {
	p := &params{r: r}
	id, page := r.PathValue("id"), p.intValue("page", 1, 1, math.MaxInt32)
	if s.applyFaults(w, p, page, 0) {
		return
	}
	pages := MedicationPages(id)
	if pages == 0 {
		respondError(w, http.StatusNotFound, "no patient %q", id)
		return
	}
	if s.firstRequestFault(w, r, id, page) {
		return
	}
	all := Medications(id)
	from := min((page-1)*medicationsPage, len(all))
	to := min(from+medicationsPage, len(all))
	respondJSON(w, http.StatusOK, object{"data": all[from:to], "paging": object{
		"hasMore": page < pages, "page": page, "pages": pages, "total": len(all),
	}})
}

// firstRequestFault answers with the built-in failure of this page, if it has one that has not occurred in this
// scenario.
func (s *Server) firstRequestFault(w http.ResponseWriter, r *http.Request, id string, page int) bool {
	for _, f := range FirstRequestFaults() {
		if f.Patient != id || f.Page != page {
			continue
		}
		if s.scenarioOf(r).countUp(fmt.Sprintf("medications %s page %d", id, page)) > 1 {
			return false
		}
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		respondError(w, f.Status, "first request for page %d of patient %q", page, id)
		return true
	}
	return false
}
