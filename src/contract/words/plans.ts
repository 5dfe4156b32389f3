import type { PAYMENT_TYPES } from '../databases/databases.js'
import { bytes } from './figures.js'

/** The words for the plan of a database. Its record has no plan, only the kind of payment and the sizes. */
export function planWords(type: (typeof PAYMENT_TYPES)[number], diskBytes: number): string {
  switch (type) {
    case 'free':
      return 'free'
    case 'payg':
      return 'pay as you go'
    case 'pro':
      return `production pack, ${bytes(diskBytes)}`
    case 'paid':
      return `fixed ${bytes(diskBytes)}`
  }
}
