import IconPencil from 'icon:pencil'
import { Alert, Button, Group, Stack, Textarea } from '@mantine/core'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { PayloadView } from '../../../components/payload.js'
import { Loaded, Refusal } from '../../../components/states.js'
import { bytes } from '../../../lib/format.js'
import { lineEndsOf, withLineEndsOf } from '../../../lib/line-ends.js'
import { type Payload, payloadOfBytes } from '../../../lib/payload.js'
import { changeString } from './collections.js'
import { MAX_SHOWN_BYTES, refreshData, useStringValue } from './reads.js'

/** A string value; editable if it is text and shown completely. */
export function StringValue({ plane, name }: { plane: DataPlane; name: string }) {
  const value = useStringValue(plane, name)
  return (
    <Loaded query={value}>
      {(known) => {
        const payload = payloadOfBytes(known.bytes)
        const isWhole = known.length <= MAX_SHOWN_BYTES
        return (
          <Stack gap="sm">
            {isWhole ? null : (
              <Alert color="gray">
                The first {bytes(MAX_SHOWN_BYTES)} of {bytes(known.length)} are shown.
              </Alert>
            )}
            <Editable
              plane={plane}
              name={name}
              payload={payload}
              canEdit={isWhole && plane.canWrite && isEditable(payload)}
            />
          </Stack>
        )
      }}
    </Loaded>
  )
}

function isEditable(payload: Payload): boolean {
  if (payload.kind === 'binary') return false
  return payload.kind === 'empty' || lineEndsOf(payload.text) !== 'mixed'
}

/** A change that is not saved yet. */
interface Draft {
  /** The value that the user began to edit. */
  readonly before: string
  readonly text: string
}

interface EditableProps {
  readonly plane: DataPlane
  readonly name: string
  readonly payload: Payload
  readonly canEdit: boolean
}

function Editable({ plane, name, payload, canEdit }: EditableProps) {
  const [draft, setDraft] = useState<Draft | undefined>()
  const write = ({ before, text }: Draft) =>
    // Also refreshes after a refusal, because the value has changed.
    plane.send(...changeString(name, before, withLineEndsOf(before, text))).finally(() => void refreshData(plane))
  const save = useTask(write, { done: 'The value was saved.', errors: 'inline', onDone: () => setDraft(undefined) })
  const close = () => {
    save.reset()
    setDraft(undefined)
  }
  if (draft === undefined) {
    const present = payload.kind === 'text' || payload.kind === 'json' ? payload.text : ''
    return (
      <>
        <PayloadView payload={payload} label="Value" empty="The value is empty." />
        {canEdit ? (
          <Group justify="flex-end">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconPencil size={14} />}
              onClick={() => setDraft({ before: present, text: present })}
            >
              Edit
            </Button>
          </Group>
        ) : null}
      </>
    )
  }
  return (
    <>
      <Textarea
        aria-label="Value"
        autosize
        minRows={4}
        maxRows={20}
        autoFocus
        value={draft.text}
        onChange={(event) => setDraft({ ...draft, text: event.currentTarget.value })}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      />
      <Refusal error={save.error} />
      <Group justify="flex-end" gap="xs">
        <Button size="compact-sm" variant="default" onClick={close}>
          Cancel
        </Button>
        <Button size="compact-sm" loading={save.isPending} onClick={() => save.mutate(draft)}>
          Save
        </Button>
      </Group>
    </>
  )
}
