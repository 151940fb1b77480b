package cost

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Price is the price of one unit of a product.
type Price struct {
	Amount    float64 `json:"amount"`
	Currency  string  `json:"currency"`  // "USD", or "CNY" in China
	Published string  `json:"published"` // date of the price list: "2026-11-23"
	AtMost    bool    `json:"atMost"`    // a spot price that is not known: it is that of On-Demand
}

// errNoPrice says that the price list does not have a product.
var errNoPrice = errors.New("no price")

// errNoList says that AWS has no price list where the cluster is.
var errNoList = errors.New("AWS has no price list for the region")

// entry is a product as GetProducts returns it ("Reading the price list files").
type entry struct {
	Product struct {
		Attributes map[string]string `json:"attributes"`
	} `json:"product"`
	PublicationDate string `json:"publicationDate"`
	Terms           struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]dimension `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

type dimension struct {
	Unit         string            `json:"unit"`
	BeginRange   string            `json:"beginRange"`
	PricePerUnit map[string]string `json:"pricePerUnit"`
}

// fetch asks AWS for the price of a product in the region of the run. Of several usage types
// that end alike ("LoadBalancerUsage", "TS-LoadBalancerUsage"), it takes the shortest.
func fetch(ctx context.Context, c *cloud.Clients, p Product) (price Price, err error) {
	if cloud.PriceListRegion(c.Region) == "" {
		return price, errNoList
	}
	in := &pricing.GetProductsInput{ServiceCode: &p.Service, FormatVersion: aws.String("aws_v1"), MaxResults: aws.Int32(100), Filters: filters(c.Region, p)}
	shortest := ""
	ctx = cloud.Listing(ctx)
	for pages := pricing.NewGetProductsPaginator(c.Pricing, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return price, err
		}
		for _, text := range page.PriceList {
			var e entry
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				return price, err
			}
			usage := e.Product.Attributes["usagetype"]
			if strings.HasSuffix(usage, p.Usage) && (shortest == "" || len(usage) < len(shortest)) {
				if found, ok := e.price(); ok {
					price, shortest = found, usage
				}
			}
		}
	}
	if shortest == "" {
		return price, errNoPrice
	}
	return price, nil
}

func filters(region string, p Product) []types.Filter {
	all := []types.Filter{equals("regionCode", region)}
	for _, a := range strings.Split(p.Attributes, "\n") {
		if name, value, ok := strings.Cut(a, "="); ok {
			all = append(all, equals(name, value))
		}
	}
	return all
}

func equals(field, value string) types.Filter {
	return types.Filter{Type: types.FilterTypeTermMatch, Field: &field, Value: &value}
}

// price returns the price of the first unit.
func (e entry) price() (Price, bool) {
	for _, term := range e.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			if d.BeginRange != "" && d.BeginRange != "0" {
				continue
			}
			for currency, text := range d.PricePerUnit {
				amount, err := strconv.ParseFloat(text, 64)
				if d.Unit == "GiBps-mo" { // everything else counts throughput in MiB/s
					amount /= 1024
				}
				date, _, _ := strings.Cut(e.PublicationDate, "T")
				return Price{Amount: amount, Currency: currency, Published: date}, err == nil
			}
		}
	}
	return Price{}, false
}
