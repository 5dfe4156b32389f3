import { Alert, Button, FileInput, Group, Modal, Progress, Radio, Select, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useRef, useState } from 'react'
import { linesOf } from '../../../../../src/contract/databases/keys/key-file.js'
import {
  IMPORT_OUTCOMES,
  type ImportEnd,
  type ImportedKey,
  type ImportOutcome,
  importKeys,
} from '../../../../../src/contract/databases/keys/key-transfer.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { useTask } from '../../../api/hooks.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { Refusal } from '../../../components/states.js'
import { base64 } from '../../../lib/base64.js'
import { serverMs } from '../../../lib/clock.js'
import { counted, whole } from '../../../lib/format.js'
import { useEnd } from './delete-keys.js'
import { ImportOutcomes, importedText, MAX_SHOWN_OUTCOMES } from './import-outcomes.js'
import { refreshData } from './reads.js'
import { fileName, SavedFile } from './saved-file.js'

interface ImportDialogProps {
  readonly plane: DataPlane
  /** The name of the database, for the report. */
  readonly database: string
  readonly isOpen: boolean
  readonly onClose: () => void
  /** Keys may have been created. */
  readonly onImported: () => void
}

/** Parallel requests: browsers open at most six connections to one server. */
const PARALLEL = 6
/** How often the page shows the progress, milliseconds. */
const SHOWN_EVERY_MS = 200

/** Imports a file of exported keys. Closing the dialog stops the import once the pending keys are done. */
export function ImportDialog({ isOpen, onClose, ...rest }: ImportDialogProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Import keys" size="lg">
      <Import {...rest} onClose={onClose} />
    </Modal>
  )
}

interface Run {
  readonly outcomes: ImportOutcomes
  readonly report: SavedFile
}

function newRun(): Run {
  const report = new SavedFile()
  return { report, outcomes: new ImportOutcomes((line) => report.add(line)) }
}

function Import({ plane, database, onClose, onImported }: Omit<ImportDialogProps, 'isOpen'>) {
  const end = useEnd()
  const [file, setFile] = useState<File | null>(null)
  const [existing, setExisting] = useState<'skip' | 'replace'>('skip')
  const [run, setRun] = useState(newRun)
  const [readBytes, setReadBytes] = useState(0)
  const shownAt = useRef(0)
  const task = useTask(
    async (chosen: File): Promise<ImportEnd> => {
      const { outcomes, report } = newRun()
      setRun({ outcomes, report })
      const onRead = (bytes: number) => {
        if (performance.now() - shownAt.current < SHOWN_EVERY_MS) return
        shownAt.current = performance.now()
        setReadBytes(bytes)
      }
      const onKey = (key: ImportedKey) => outcomes.add(key)
      const options = { base64, existing, parallel: PARALLEL, now: serverMs, onKey, signal: end }
      try {
        return await importKeys(plane.keys, linesOf(bytesOf(chosen, onRead)), options)
      } catch (error) {
        if (!end.aborted) throw error
        // The dialog was closed, so only a notification can show the result.
        notifications.show({ message: `The import was stopped: ${countsOf(outcomes)}.` })
        return 'cut'
      }
    },
    {
      errors: 'inline',
      onDone: () => {
        onImported()
        void refreshData(plane)
      },
    },
  )
  const hasEnded = task.isSuccess || (task.isError && run.outcomes.total > 0)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (file) task.mutate(file, { onError: onImported })
      }}
    >
      <Stack gap="md">
        <FileInput
          label="File"
          description="A file of an export, here or with `homeport db keys export`"
          placeholder="Choose a file"
          accept=".jsonl,application/x-ndjson"
          value={file}
          disabled={task.isPending}
          onChange={(chosen) => {
            setFile(chosen)
            task.reset()
          }}
        />
        <Radio.Group
          label="Keys that exist"
          value={existing}
          onChange={(value) => setExisting(value === 'replace' ? 'replace' : 'skip')}
        >
          <Stack gap={6} mt={6}>
            <Radio value="skip" label="Skip them: they stay as they are" disabled={task.isPending} />
            <Radio value="replace" label="Replace them with the keys of the file" disabled={task.isPending} />
          </Stack>
        </Radio.Group>
        {task.isPending && file ? (
          <Progress value={(readBytes / Math.max(1, file.size)) * 100} aria-label="File read" />
        ) : null}
        <Refusal error={task.error} />
        {task.data === 'cut' ? (
          <Alert color="orange">The file ends early: keys after its last line are missing in it.</Alert>
        ) : null}
        {hasEnded ? <Outcomes run={run} database={database} /> : null}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {hasEnded ? 'Close' : 'Cancel'}
          </Button>
          {task.isSuccess ? null : (
            <Button
              type="submit"
              disabled={file === null}
              loading={task.isPending}
              {...(existing === 'replace' && { color: 'red.9' })}
            >
              {existing === 'replace' ? 'Import and replace' : 'Import the keys'}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  )
}

async function* bytesOf(file: File, onRead: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const reader = file.stream().getReader()
  let bytes = 0
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    yield read.value
    bytes += read.value.length
    onRead(bytes)
  }
}

const COLUMNS: readonly Column<ImportedKey>[] = [
  { key: 'name', title: 'Key', render: (key) => importedText(key) },
  { key: 'problem', title: 'Reason', render: ({ problem }) => problem ?? '–', from: 'sm' },
]

function countsOf(outcomes: ImportOutcomes): string {
  const present = IMPORT_OUTCOMES.filter((outcome) => outcomes.count(outcome) > 0)
  return present.length === 0 ? 'no keys' : present.map((one) => `${whole(outcomes.count(one))} ${one}`).join(', ')
}

function Outcomes({ run: { outcomes, report }, database }: { run: Run; database: string }) {
  const present = IMPORT_OUTCOMES.filter((outcome) => outcomes.count(outcome) > 0)
  const [chosen, setChosen] = useState<ImportOutcome | undefined>()
  const outcome = chosen ?? (outcomes.count('failed') > 0 ? 'failed' : present[0])
  return (
    <Stack gap="xs">
      <Text size="sm" role="status">
        {countsOf(outcomes)}
      </Text>
      {outcome === undefined ? null : (
        <>
          <Group justify="space-between" gap="xs">
            <Select
              aria-label="Outcome"
              size="xs"
              w={180}
              data={present.map((one) => ({ value: one, label: `${one} (${whole(outcomes.count(one))})` }))}
              value={outcome}
              onChange={(value) => setChosen(IMPORT_OUTCOMES.find((known) => known === value))}
            />
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => report.save(fileName(database, 'import-report', new Date()))}
            >
              Save the report
            </Button>
          </Group>
          <DataTable
            label={`Keys: ${outcome}`}
            columns={COLUMNS}
            rows={outcomes.of(outcome)}
            rowKey={({ line }) => String(line)}
            maxHeight="260px"
          />
          {outcomes.count(outcome) > MAX_SHOWN_OUTCOMES ? (
            <Text size="xs" c="dimmed">
              The first {counted(MAX_SHOWN_OUTCOMES, 'key')} are listed; the report has all of them.
            </Text>
          ) : null}
        </>
      )}
    </Stack>
  )
}
