import { Button, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { listDatabaseSummaries } from '../../../../src/contract/console/console.js'
import { getDatabase } from '../../../../src/contract/databases/databases.js'

/** The endpoints to read again after a database changed. */
export const DATABASE_READS = [getDatabase, listDatabaseSummaries]

/** One setting: its description on the left, its control on the right. */
export function Setting({ title, about, children }: { title: string; about: ReactNode; children: ReactNode }) {
  return (
    <Group align="flex-start" gap="md" justify="space-between">
      <Stack gap={2} flex="1 1 260px" maw={460}>
        <Text size="sm" fw={600}>
          {title}
        </Text>
        <Text size="sm" c="dimmed" component="div">
          {about}
        </Text>
      </Stack>
      <div style={{ flex: '1 1 320px', maxWidth: 460 }}>{children}</div>
    </Group>
  )
}

/** The form of one setting; its button is enabled once the value differs. */
export function SaveForm({
  children,
  isChanged,
  isPending,
  onSave,
  action = 'Save',
}: {
  children: ReactNode
  isChanged: boolean
  isPending: boolean
  onSave: () => void
  action?: string
}) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isChanged) onSave()
      }}
    >
      <Group align="flex-start" gap="xs" wrap="nowrap">
        <div style={{ flex: 1, minWidth: 0 }}>{children}</div>
        <Button type="submit" variant="default" disabled={!isChanged} loading={isPending}>
          {action}
        </Button>
      </Group>
    </form>
  )
}
