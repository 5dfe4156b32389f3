/** The common fields of dead letters of messages and of runs. */

interface Letter {
  readonly dlqId: string
  /** 0: there was no response. */
  readonly responseStatus: number
}

/** When the last attempt failed: the first part of the id, Unix milliseconds. */
export const failedAtMs = ({ dlqId }: Pick<Letter, 'dlqId'>): number => Number(dlqId.split('-')[0])

/** The status of the last response. */
export const answerOf = ({ responseStatus }: Pick<Letter, 'responseStatus'>): string =>
  responseStatus === 0 ? 'none' : String(responseStatus)
