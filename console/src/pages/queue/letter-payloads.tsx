import { PayloadPart } from '../../components/payload.js'
import { payloadOfBody } from '../../lib/payload.js'

/** What a dead letter keeps of its last attempt. */
interface Kept {
  readonly responseBody?: string
  readonly responseBodyBase64?: string
  readonly body?: string
  readonly bodyBase64?: string
}

/** What was said to the last attempt, and what had been sent. */
export function LetterPayloads({
  letter: { responseBody, responseBodyBase64, body, bodyBase64 },
  said,
  sent,
  nothingSent,
}: {
  letter: Kept
  /** Title of the answer. */
  said: string
  /** Title of what had been sent. */
  sent: string
  nothingSent: string
}) {
  return (
    <>
      <PayloadPart
        title={said}
        payload={payloadOfBody(responseBody, responseBodyBase64)}
        label="Last answer"
        empty="Nothing."
      />
      <PayloadPart title={sent} payload={payloadOfBody(body, bodyBase64)} label={sent} empty={nothingSent} />
    </>
  )
}
