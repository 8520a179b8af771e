# needs: openpyxl
# %%
import openpyxl
wb = openpyxl.Workbook()
ws = wb.active; ws.title = 'First'; ws['A1'] = 'x'; ws['B2'] = 3; ws['B3'] = '=B2*2'
second = wb.create_sheet('Second'); second.append([1, 2, 3])
cell = ws['B2']
book = {'wb': wb}
# %% check
book['wb'] is wb and wb['First'] is ws and wb.sheetnames == ['First', 'Second'] and cell.value == 3 and ws['B2'] is cell
[c.value for c in second[1]] == [1, 2, 3] and ws['B3'].value == '=B2*2'
# %% then
ws['A2'] = 'new'; wb.save('out.xlsx')
# %% check
openpyxl.load_workbook('out.xlsx')['First']['A2'].value == 'new'
