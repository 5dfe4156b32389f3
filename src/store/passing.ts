import { isError } from '../contract/errors/errors.js'

const PASSING = ['store_full', 'store_unavailable', 'store_outcome_unknown', 'store_in_use', 'starting'] as const

/**
 * Whether a failure is transient, so that the same work can succeed later. Damage, refusals and defects are not: the number
 * of their retries must be limited.
 */
export const isPassing = (error: unknown): boolean => PASSING.some((code) => isError(error, code))
