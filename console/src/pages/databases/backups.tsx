import IconArchive from 'icon:archive'
import IconPlus from 'icon:plus'
import { Badge, Button, Group, Stack, Switch, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import {
  type BackupRecord,
  createBackup,
  deleteBackup,
  disableDailyBackup,
  downloadBackup,
  enableDailyBackup,
  listBackups,
  restoreBackup,
} from '../../../../src/contract/databases/backups.js'
import { type DatabaseRecord, getDatabase } from '../../../../src/contract/databases/databases.js'
import { BACKUP_WORDS } from '../../../../src/contract/words/states.js'
import { api, urlOf } from '../../api/client.js'
import { LIVE_MS, useApi, useChange, useTask } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { FormDialog } from '../../components/form-dialog.js'
import { Panel } from '../../components/page.js'
import { RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { bytes, counted, whole } from '../../lib/format.js'
import { Imports } from './imports.js'

/** Backups of a database: create, restore, download, delete; and imports. */
export function BackupsTab({ database }: { database: DatabaseRecord }) {
  const canWrite = useCanWrite()
  return (
    <Stack gap="lg">
      <Backups database={database} />
      {canWrite ? <Imports database={database} /> : null}
    </Stack>
  )
}

function Backups({ database }: { database: DatabaseRecord }) {
  const [isOpen, { open, close }] = useDisclosure()
  const canWrite = useCanWrite()
  const backups = useApi(listBackups, { params: { id: database.database_id } }, { everyMs: LIVE_MS })
  const make = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={open}>
      Create a backup
    </Button>
  ) : undefined
  return (
    <Panel
      flush
      title="Backups"
      about="A backup is completed once a separate engine has loaded it and its data was compared."
      actions={
        <Group gap="md">
          {canWrite ? <DailyBackup database={database} /> : null}
          {make}
        </Group>
      }
    >
      <Loaded query={backups} loading={<LoadingLines count={3} />}>
        {(rows) => (
          <DataTable
            label="Backups"
            columns={columnsFor(database, canWrite)}
            rows={rows}
            rowKey={({ backup_id }) => backup_id}
            empty={
              <EmptyState title="No backups yet" icon={IconArchive} action={make}>
                Create one before a risky change. The database keeps serving meanwhile.
              </EmptyState>
            }
          />
        )}
      </Loaded>
      <CreateBackup database={database} isOpen={isOpen} onClose={close} />
    </Panel>
  )
}

function DailyBackup({ database: { database_id, daily_backup_enabled } }: { database: DatabaseRecord }) {
  const args = { params: { id: database_id } }
  const set = useTask((on: boolean) => (on ? api(enableDailyBackup, args) : api(disableDailyBackup, args)), {
    refreshes: [getDatabase],
    done: 'The daily backup was changed.',
  })
  return (
    <Switch
      label="Daily backup"
      checked={daily_backup_enabled}
      disabled={set.isPending}
      onChange={(event) => set.mutate(event.currentTarget.checked)}
    />
  )
}

function columnsFor(database: DatabaseRecord, canWrite: boolean): Column<BackupRecord>[] {
  return [
    {
      key: 'name',
      title: 'Name',
      wraps: true,
      render: ({ name, failure }) => (
        <>
          {name}
          {failure === undefined ? null : (
            <Text size="xs" c="var(--mantine-color-error)">
              {failure}
            </Text>
          )}
        </>
      ),
    },
    {
      key: 'state',
      title: 'State',
      width: '130px',
      render: ({ state }) => <StateOf word={BACKUP_WORDS[state]} />,
    },
    {
      key: 'kind',
      title: 'Kind',
      width: '120px',
      from: 'sm',
      render: ({ internal_backup_tag }) => <Badge color="gray">{internal_backup_tag}</Badge>,
    },
    {
      key: 'keys',
      title: 'Keys',
      width: '100px',
      align: 'right',
      from: 'sm',
      render: ({ key_count }) => whole(key_count),
    },
    {
      key: 'size',
      title: 'Size',
      width: '100px',
      align: 'right',
      from: 'xs',
      render: ({ backup_size }) => bytes(backup_size),
    },
    {
      key: 'time',
      title: 'Created',
      width: '150px',
      from: 'sm',
      render: ({ creation_time }) => <When atMs={creation_time * 1000} />,
    },
    {
      key: 'actions',
      title: '',
      width: '64px',
      align: 'right',
      render: (backup) => <BackupMenu backup={backup} database={database} canWrite={canWrite} />,
    },
  ]
}

interface BackupMenuProps {
  readonly backup: BackupRecord
  readonly database: DatabaseRecord
  readonly canWrite: boolean
}

function BackupMenu({ backup, database, canWrite }: BackupMenuProps) {
  const params = { id: database.database_id, backup_id: backup.backup_id }
  const restore = () =>
    confirm({
      title: `Restore ${backup.name} into ${database.database_name}`,
      text: `All data of the database is replaced by the ${counted(backup.key_count, 'key')} of this backup. The current data is backed up first.`,
      action: 'Replace the data',
      typed: database.database_name,
      onConfirm: () => api(restoreBackup, { params: { id: params.id }, body: { backup_id: params.backup_id } }),
      refreshes: [listBackups],
    })
  const remove = () =>
    confirm({
      title: `Delete the backup ${backup.name}`,
      text: 'Its file is deleted. This cannot be undone.',
      action: 'Delete the backup',
      onConfirm: () => api(deleteBackup, { params }),
      refreshes: [listBackups],
    })
  const isDisabled = backup.state !== 'completed'
  const file = {
    label: 'Download',
    href: urlOf(downloadBackup, { params }),
    download: `${backup.name}.rdb`,
    isDisabled,
  }
  const changes = [
    { label: 'Restore', onClick: restore, isDisabled },
    { label: 'Delete', onClick: remove, isDangerous: true },
  ]
  return <RowMenu of={backup.name} actions={[file, ...(canWrite ? changes : [])]} />
}

function CreateBackup({
  database,
  isOpen,
  onClose,
}: {
  database: DatabaseRecord
  isOpen: boolean
  onClose: () => void
}) {
  const form = useForm({
    initialValues: { name: '' },
    validate: { name: (name) => (name.trim() === '' ? 'Enter a name for the backup' : null) },
  })
  const make = useChange(createBackup, {
    refreshes: [listBackups],
    errors: 'inline',
    done: 'The backup was created and verified.',
    onDone: () => {
      form.reset()
      onClose()
    },
  })
  const submit = form.onSubmit((body) => make.mutate({ params: { id: database.database_id }, body }))
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a backup"
      task={make}
      action="Create the backup"
      onSubmit={submit}
    >
      <TextInput
        label="Name"
        description="Such as: before the migration"
        data-autofocus
        {...form.getInputProps('name')}
      />
    </FormDialog>
  )
}
