import { Group, Kbd, Stack, Text } from '@mantine/core'
import { modals } from '@mantine/modals'

const SHORTCUTS = [
  { keys: '/', does: 'Go to the search or filter of the page' },
  { keys: '?', does: 'Show this list' },
  { keys: 'Esc', does: 'Close a dialog or a menu' },
  { keys: 'Tab', does: 'Go to the next control; the first one skips to the content' },
] as const

/** Shows which keys do what. */
export function showShortcuts(): void {
  modals.open({
    title: 'Keyboard shortcuts',
    children: (
      <Stack gap="xs">
        {SHORTCUTS.map(({ keys, does }) => (
          <Group key={keys} gap="md" wrap="nowrap">
            <Kbd w={52} ta="center">
              {keys}
            </Kbd>
            <Text size="sm">{does}</Text>
          </Group>
        ))}
      </Stack>
    ),
  })
}
