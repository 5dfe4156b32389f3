import { Type } from 'typebox'
import { PATTERN_IN_WORDS } from '../endpoint.js'
import { ALERT_KINDS } from './kinds.js'

/** A text of an answer. */
export const text = (description: string) => Type.String({ description })
/** A time of an answer. */
export const seconds = (description: string) => Type.Integer({ description: `${description} Unix seconds.` })
/** A text that a person writes. */
export const written = (description: string, most: number) =>
  Type.String({
    minLength: 1,
    maxLength: most,
    pattern: '^[^\\p{Cc}\\p{Cs}]+$',
    [PATTERN_IN_WORDS]: 'must have no control characters and no half of a character',
    description,
  })
/** The name of a rule. */
export const kind = (description: string) => Type.Enum([...ALERT_KINDS], { description })
/** Members that the declarations of all operations of alerts share. */
export const shared = { service: 'management', topic: 'Alerts', auth: 'basic' } as const
/** Errors of reads. */
export const storeErrors = ['store_unavailable'] as const
/** Errors of changes. */
export const writeErrors = ['store_full', 'store_unavailable'] as const
