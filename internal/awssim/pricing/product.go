package pricing

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Codes of the terms of a price, which are the same for all products.
const (
	onDemand = "JRTCKXETXF"
	hourly   = "6YS6EN2CT7"
)

// product is an entry of the price list.
type product struct {
	service, family string
	attributes      map[string]string
	unit            string // "Hrs", "GB-Mo", …
	price           float64
}

// field returns what a filter compares: an attribute, or the product family.
func (p product) field(name string) string {
	if name == "productFamily" {
		return p.family
	}
	return p.attributes[name]
}

// sku is the product's key: 16 letters and digits.
func (p product) sku() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(p.attributes)) {
		all = append(all, k+"="+p.attributes[k])
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return strings.ToUpper(hex.EncodeToString(sum[:8]))
}

// document is the product as GetProducts returns it, in JSON. The order of the fields, and
// what is not used here (description, effective date), differ from AWS's.
func (p product) document() map[string]any {
	sku, term := p.sku(), p.sku()+"."+onDemand
	dimension := map[string]any{
		"unit": p.unit, "beginRange": "0", "endRange": "Inf", "appliesTo": []string{}, "rateCode": term + "." + hourly,
		"description": "$" + amount(p.price) + " per " + p.unit, "pricePerUnit": map[string]string{p.currency(): amount(p.price)},
	}
	body := map[string]any{"sku": sku, "attributes": p.attributes}
	if p.family != "" {
		body["productFamily"] = p.family
	}
	return map[string]any{
		"product":         body,
		"serviceCode":     p.service,
		"version":         strings.NewReplacer("-", "", ":", "", "T", "", "Z", "").Replace(list().Published),
		"publicationDate": list().Published,
		"terms": map[string]any{"OnDemand": map[string]any{term: map[string]any{
			"sku": sku, "offerTermCode": onDemand, "effectiveDate": list().Published, "termAttributes": map[string]string{},
			"priceDimensions": map[string]any{term + "." + hourly: dimension},
		}}},
	}
}

func (p product) currency() string {
	if strings.HasPrefix(p.attributes["regionCode"], "cn-") {
		return "CNY"
	}
	return "USD"
}

// amount prints a price as AWS does: with ten digits.
func amount(price float64) string { return strconv.FormatFloat(price, 'f', 10, 64) }
