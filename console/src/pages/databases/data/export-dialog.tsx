import { Alert, Button, Group, Modal, Progress, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { type ExportTotals, exportKeys, foundNames } from '../../../../../src/contract/databases/keys/key-transfer.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { Refusal } from '../../../components/states.js'
import { base64 } from '../../../lib/base64.js'
import { serverMs } from '../../../lib/clock.js'
import { counted, whole } from '../../../lib/format.js'
import { useEnd } from './delete-keys.js'
import type { KeySearch } from './keys.js'
import { fileName, SavedFile } from './saved-file.js'
import { shownName } from './shown-name.js'

/** The keys to export: a list of names, or the results of a search. */
export type ExportWhat =
  | { readonly kind: 'names'; readonly names: readonly KeyName[] }
  | { readonly kind: 'search'; readonly search: KeySearch; readonly total: number }

interface ExportDialogProps {
  readonly plane: DataPlane
  /** The name of the database, for the file. */
  readonly database: string
  /** Absent: the dialog is closed. */
  readonly what: ExportWhat | undefined
  readonly onClose: () => void
}

const SCAN_COUNT = 1_000
const MAX_REFUSALS = 20

/** Exports keys to a file that the browser saves. Closing the dialog stops the export, and no file is saved. */
export function ExportDialog({ what, onClose, ...rest }: ExportDialogProps) {
  return (
    <Modal opened={what !== undefined} onClose={onClose} title="Export keys">
      {what === undefined ? null : <Export {...rest} what={what} onClose={onClose} />}
    </Modal>
  )
}

interface Refused {
  readonly name: KeyName
  readonly problem: string
}

function Export({ plane, database, what, onClose }: ExportDialogProps & { what: ExportWhat }) {
  const end = useEnd()
  const [done, setDone] = useState<ExportTotals>({ exported: 0, gone: 0, refused: 0 })
  const [searched, setSearched] = useState(0)
  const [refused, setRefused] = useState<readonly Refused[]>([])
  const task = useTask(
    async () => {
      const file = new SavedFile()
      const onRefused = (name: KeyName, problem: string) =>
        setRefused((some) => [...some, { name, problem }].slice(0, MAX_REFUSALS))
      const options = { base64, nowMs: serverMs(), onRefused, onStep: setDone }
      for await (const piece of exportKeys(plane.keys, namesOf(plane, what, setSearched), options)) {
        if (end.aborted) return
        file.add(piece)
      }
      file.save(fileName(database, 'keys', new Date()))
    },
    { errors: 'inline' },
  )
  return (
    <Stack gap="md">
      <Text size="sm">
        {aboutOf(what)} The file has a line for each key with its type, expiry and value, and can be imported here or
        with the command line. Keys that change meanwhile are exported as they are when they are read.
      </Text>
      {task.isPending ? <Work what={what} done={done} searched={searched} /> : null}
      <Refusal error={task.error} />
      {task.isSuccess ? <Done totals={done} /> : null}
      {refused.length > 0 ? <Refusals refused={refused} count={done.refused} /> : null}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          {task.isSuccess ? 'Close' : 'Cancel'}
        </Button>
        {task.isSuccess ? null : (
          <Button data-autofocus loading={task.isPending} onClick={() => task.mutate()}>
            Export the keys
          </Button>
        )}
      </Group>
    </Stack>
  )
}

function namesOf(plane: DataPlane, what: ExportWhat, onSearched: (count: number) => void) {
  if (what.kind === 'names') return [what.names]
  const { pattern, type } = what.search
  return foundNames(plane.keys, { pattern: pattern === '' ? undefined : pattern, type, count: SCAN_COUNT }, onSearched)
}

function aboutOf(what: ExportWhat): string {
  if (what.kind === 'names') return `${counted(what.names.length, 'key is', 'keys are')} exported.`
  const { pattern, type } = what.search
  if (pattern === '' && type === undefined) return 'All keys of the database are exported.'
  return `The keys that match ${[pattern, type && `the type ${type}`].filter(Boolean).join(' and ')} are exported.`
}

function Work({ what, done, searched }: { what: ExportWhat; done: ExportTotals; searched: number }) {
  const [part, total] = what.kind === 'names' ? [done.exported, what.names.length] : [searched, what.total]
  return (
    <Stack gap={4}>
      <Progress value={total === 0 ? 100 : Math.min(100, (part / total) * 100)} aria-label="Keys exported" />
      <Text size="xs" c="dimmed">
        {counted(done.exported, 'key')} exported
      </Text>
    </Stack>
  )
}

function Done({ totals: { exported, gone } }: { totals: ExportTotals }) {
  return (
    <Alert color="green" role="status">
      {counted(exported, 'key')} exported; the browser saves the file.
      {gone > 0 ? ` ${counted(gone, 'key')} did not exist any more.` : ''}
    </Alert>
  )
}

function Refusals({ refused, count }: { refused: readonly Refused[]; count: number }) {
  return (
    <Alert color="red" title={`${counted(count, 'key was', 'keys were')} not exported`}>
      {refused.map(({ name, problem }) => (
        <Text key={name} size="sm" c="inherit">
          {shownName(name)}: {problem}
        </Text>
      ))}
      {count > refused.length ? `and ${whole(count - refused.length)} more` : null}
    </Alert>
  )
}
