/** The prices of plans as text, from the table that the server sends. */
import type { OfferedPlan } from '../../../../src/contract/console/console.js'
import { dollars } from '../../lib/format.js'

/** The price of a plan in one line. */
export function priceText({ price_per_month, price_per_100k_commands, price_per_gb_month }: OfferedPlan): string {
  const parts = [
    ...(price_per_month > 0 ? [`${dollars(price_per_month)} per month`] : []),
    ...(price_per_100k_commands > 0 ? [`${dollars(price_per_100k_commands)} per 100,000 commands`] : []),
    ...(price_per_gb_month > 0 ? [`${dollars(price_per_gb_month)} per GB-month after the first`] : []),
  ]
  return parts.length === 0 ? 'Free' : parts.join(' + ')
}
