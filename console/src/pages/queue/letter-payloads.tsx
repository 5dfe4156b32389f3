import { PayloadPart } from '../../components/payload.js'
import { payloadOfBody } from '../../lib/payload.js'

/** The payloads of the last attempt of a dead letter. */
interface LastAttempt {
  /** 0: there was no response, and `responseBody` says why. */
  readonly responseStatus: number
  readonly responseBody?: string
  readonly responseBodyBase64?: string
  readonly body?: string
  readonly bodyBase64?: string
}

/** The response to the last attempt, and the sent body. */
export function LetterPayloads({
  letter: { responseStatus, responseBody, responseBodyBase64, body, bodyBase64 },
  said,
  sent,
  nothingSent,
}: {
  letter: LastAttempt
  /** The title of the response. */
  said: string
  /** The title of the sent body. */
  sent: string
  nothingSent: string
}) {
  return (
    <>
      <PayloadPart
        title={responseStatus === 0 ? 'Why there was no response' : said}
        payload={payloadOfBody(responseBody, responseBodyBase64)}
        label="Last response"
        empty="Nothing."
      />
      <PayloadPart title={sent} payload={payloadOfBody(body, bodyBase64)} label={sent} empty={nothingSent} />
    </>
  )
}
