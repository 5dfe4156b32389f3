import IconPencil from 'icon:pencil'
import { Alert, Button, Group, Stack, Textarea } from '@mantine/core'
import { useState } from 'react'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { PayloadView } from '../../../components/payload.js'
import { Loaded } from '../../../components/states.js'
import { bytes } from '../../../lib/format.js'
import { type Payload, payloadOfBytes } from '../../../lib/payload.js'
import { MOST_SHOWN_BYTES, refreshData, useStringValue } from './reads.js'

/** A string value; editable if it is text and shown completely. */
export function StringValue({ plane, name }: { plane: DataPlane; name: string }) {
  const value = useStringValue(plane, name)
  return (
    <Loaded query={value}>
      {(known) => {
        const payload = payloadOfBytes(known.bytes)
        const isWhole = known.length <= MOST_SHOWN_BYTES
        return (
          <Stack gap="sm">
            {isWhole ? null : (
              <Alert color="gray">
                The first {bytes(MOST_SHOWN_BYTES)} of {bytes(known.length)} are shown.
              </Alert>
            )}
            <Editable
              plane={plane}
              name={name}
              payload={payload}
              canEdit={isWhole && plane.canWrite && payload.kind !== 'binary'}
            />
          </Stack>
        )
      }}
    </Loaded>
  )
}

interface EditableProps {
  readonly plane: DataPlane
  readonly name: string
  readonly payload: Payload
  readonly canEdit: boolean
}

function Editable({ plane, name, payload, canEdit }: EditableProps) {
  const [draft, setDraft] = useState<string | undefined>()
  // The expiry does not change.
  const save = useTask((text: string) => plane.send('SET', name, text, 'KEEPTTL'), {
    done: 'The value was saved.',
    onDone: () => {
      setDraft(undefined)
      void refreshData(plane)
    },
  })
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
              onClick={() => setDraft(present)}
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
        value={draft}
        onChange={(event) => setDraft(event.currentTarget.value)}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      />
      <Group justify="flex-end" gap="xs">
        <Button size="compact-sm" variant="default" onClick={() => setDraft(undefined)}>
          Cancel
        </Button>
        <Button size="compact-sm" loading={save.isPending} onClick={() => save.mutate(draft)}>
          Save
        </Button>
      </Group>
    </>
  )
}
