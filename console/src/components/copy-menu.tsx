import IconCopy from 'icon:copy'
import { Button, Menu } from '@mantine/core'
import { useTask } from '../api/hooks.js'
import { copyText } from '../lib/clipboard.js'

/** A menu that copies one of several texts, which are made when it is chosen. */
export function CopyMenu({
  of,
  done,
}: {
  of: () => readonly { readonly title: string; readonly code: string }[]
  /** Said after a text was copied. */
  done: string
}) {
  const { mutate } = useTask(copyText, { done })
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <Button variant="default" leftSection={<IconCopy size={16} />}>
          Copy as…
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {of().map(({ title, code }) => (
          <Menu.Item key={title} onClick={() => mutate(code)}>
            {title}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
