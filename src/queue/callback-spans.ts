import type { PublicationEnd, PublicationSpan, Publishing, ReceivedTrace, Tracer } from '../telemetry/index.js'
import { traceOf } from './publish/traced.js'
import type { NewMessage } from './transactions/messages.js'
import type { CallbackConfig, PendingMessage } from './types.js'

/** The spans of the callbacks that follow from one outcome. They end when the callbacks are stored. */
export class CallbackSpans {
  readonly #tracer: Tracer
  readonly #source: PendingMessage
  readonly #open: { readonly span: PublicationSpan; readonly messageId: string }[] = []

  /** @param source the message that the callbacks report about, in the trace of its attempt. */
  constructor(tracer: Tracer, source: PendingMessage) {
    this.#tracer = tracer
    this.#source = source
  }

  /** Drafts a callback within a span. */
  make(operation: Publishing, { url }: CallbackConfig, draft: (trace: ReceivedTrace) => NewMessage): NewMessage {
    const parent = traceOf(this.#source.headers)
    const span = this.#tracer.publication({ operation, destination: url, parent })
    const message = draft(span.context)
    this.#open.push({ span, messageId: message.message_id })
    return message
  }

  /** Ends the spans. With a `refusal`, the callbacks were not stored. */
  end(refusal?: PublicationEnd): void {
    for (const { span, messageId } of this.#open.splice(0)) {
      span.end(refusal ?? { kind: 'accepted', messageIds: [messageId], isDuplicate: false })
    }
  }
}
