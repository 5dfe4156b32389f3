import { Alert, Button, FileInput, Group, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { importFile, importFromUrl, listImports } from '../../../../src/contract/databases/backups.js'
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { IMPORT_WORDS } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi } from '../../api/hooks.js'
import { confirm } from '../../components/confirm.js'
import { Fact } from '../../components/copy.js'
import { Panel } from '../../components/page.js'
import { Status } from '../../components/status.js'
import { bytes, counted, whole } from '../../lib/format.js'
import { capital } from '../../lib/states.js'

/** Imports, which replace all data with that of a Redis server or a file. */
export function Imports({ database }: { database: DatabaseRecord }) {
  return (
    <Panel
      title="Import"
      about="Replaces all data of this database with that of a Redis server or a file. The current data is backed up first."
    >
      <Stack gap="md">
        <ImportProgress databaseId={database.database_id} />
        <Group align="flex-end" gap="lg">
          <FromServer database={database} />
          <FromFile database={database} />
        </Group>
      </Stack>
    </Panel>
  )
}

function ImportProgress({ databaseId }: { databaseId: string }) {
  const imports = useApi(listImports, { params: { id: databaseId } }, { everyMs: LIVE_MS })
  if (imports.isError) return <Alert color="red">{imports.error.message}</Alert>
  const [last] = imports.data ?? []
  if (!last) return null
  const { state, source, keys_read, keys_total, bytes_read, failure } = last
  const { tone, word } = IMPORT_WORDS[state]
  return (
    <div>
      <Fact name="Last import">
        <Status tone={tone}>
          {capital(word)}, from {source}
        </Status>
      </Fact>
      <Fact name="Progress">
        {keys_total === undefined ? counted(keys_read, 'key') : `${whole(keys_read)} of ${counted(keys_total, 'key')}`},{' '}
        {bytes(bytes_read)}
      </Fact>
      {failure === undefined ? null : (
        <Text size="sm" c="var(--mantine-color-error)">
          {failure}
        </Text>
      )}
    </div>
  )
}

const replaceQuestion = ({ database_name }: DatabaseRecord, onConfirm: () => Promise<unknown>) =>
  confirm({
    title: `Replace all data of ${database_name}`,
    text: 'The current data is backed up first, then the import replaces it.',
    action: 'Replace the data',
    typed: database_name,
    onConfirm,
    refreshes: [listImports],
  })

function FromServer({ database }: { database: DatabaseRecord }) {
  const [url, setUrl] = useState('')
  const run = async () => {
    await api(importFromUrl, { params: { id: database.database_id }, body: { url: url.trim() } })
    setUrl('')
  }
  return (
    <Group align="flex-end" gap="xs" flex="1 1 300px">
      <TextInput
        label="From a Redis server"
        placeholder="redis://user:password@host:6379"
        flex={1}
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        autoComplete="off"
      />
      <Button
        variant="default"
        disabled={!/^rediss?:\/\//.test(url.trim())}
        onClick={() => replaceQuestion(database, run)}
      >
        Import
      </Button>
    </Group>
  )
}

function FromFile({ database }: { database: DatabaseRecord }) {
  const [file, setFile] = useState<File | null>(null)
  const run = async () => {
    await api(importFile, { params: { id: database.database_id }, body: file ?? undefined })
    setFile(null)
  }
  return (
    <Group align="flex-end" gap="xs" flex="1 1 300px">
      <FileInput
        label="From an RDB file"
        placeholder="Choose a file"
        size="sm"
        flex={1}
        clearable
        value={file}
        onChange={setFile}
      />
      <Button variant="default" disabled={file === null} onClick={() => replaceQuestion(database, run)}>
        Import
      </Button>
    </Group>
  )
}
