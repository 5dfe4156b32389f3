import { isError } from '../contract/errors/errors.js'

const PASSING = ['store_full', 'store_unavailable', 'store_outcome_unknown', 'store_in_use', 'starting'] as const

/**
 * Whether a failure passes by itself, so that the same work can succeed later. Damage, refusals and defects do not: repeating
 * them needs an end.
 */
export const isPassing = (error: unknown): boolean => PASSING.some((code) => isError(error, code))
