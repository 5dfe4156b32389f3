/** What dead letters of messages and of runs have in common. */

interface Letter {
  readonly dlqId: string
  /** 0: there was no answer. */
  readonly responseStatus: number
}

/** When the last attempt failed: the first part of the id, Unix milliseconds. */
export const failedAtMs = ({ dlqId }: Pick<Letter, 'dlqId'>): number => Number(dlqId.split('-')[0])

/** The status of the last answer. */
export const answerOf = ({ responseStatus }: Pick<Letter, 'responseStatus'>): string =>
  responseStatus === 0 ? 'none' : String(responseStatus)
